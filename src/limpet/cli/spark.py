"""The commands `limpet spark …`. Heavy imports stay inside, so that help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limpet.cli import options as opt
from limpet.cli.config import configurable

# A paragraph is one line; \b: the lines of a paragraph stay as they are.
APP_HELP = """Run past one machine, on Spark: score streams, move states.

The same models and the same answers as everywhere else, to the last bit. Needs Java 17 and PySpark: \
pip install 'limpet\\[spark]'.

\b
Examples:
  limpet spark score incoming --key sensor --out scored --checkpoint state
  limpet spark status state
  limpet spark rebucket state --buckets 256
  limpet spark export state fleet.limpet
"""

app = typer.Typer(help=APP_HELP, no_args_is_help=True)

SCORE_HELP = """Score a stream with Spark: every row goes on to --out, with its score and its alarms beside it.

SOURCE is a folder that files are dropped into, or a pattern such as 'incoming/*.csv': Parquet, separated values with \
a header, or JSON lines. Move files in whole: they are taken by the time of their last change, the oldest first, \
whatever their age. Or kafka://host:9092/topic, whose messages are JSON, up to a million in a batch (--option \
maxOffsetsPerTrigger=…), or, to try things out, socket://host:9999, whose lines are; both need --schema. What is no \
JSON goes on as text in the column _corrupt_record.

Every key is a stream with a learner of its own. Rows are learnt in the order of --time, and one that is older than \
the last of its key is `late`: it is passed on, and nothing is learnt from it. What cannot be used is marked `bad`.

With the same --checkpoint it goes on where it was, whatever has happened, and no row counts twice. After a crash, \
files of a broken attempt may stay in --out: Spark passes over them, other readers (pandas, DuckDB) do not; read \
the results with Spark, or write Delta. Settings that the states cannot go on with are refused.

\b
Examples:
  limpet spark score incoming --key sensor --time ts \\
    --out scored --checkpoint state
  limpet spark score 'days/*.csv' --key sensor --time ts --batch --out all
  limpet spark score kafka://localhost:9092/sensors --key sensor --time ts \\
    --schema 'sensor string, ts timestamp, flow double' \\
    --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION \\
    --out scored --checkpoint state

VERSION is that of your Spark.

SIGTERM and Ctrl-C end it in order; with --batch there is no table then (one that is whole has a file _SUCCESS). Exit \
codes: 0 ended or stopped, 1 Spark's job died while it ran, 2 something is wrong with source or settings, 130 \
--batch was interrupted.
"""

Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The folder given to --checkpoint.")]
EXIT_CODES_HELP = "\n\nExit codes: 0 done, 2 something is wrong.\n"


@configurable(app, "spark", SCORE_HELP)
def score(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source to score.")],
    columns: opt.Columns = None,
    key: opt.Key = None,
    time: opt.Time = None,
    input_format: opt.SparkInputFormat = None,
    schema: opt.SchemaOption = None,
    option: opt.SourceOption = None,
    watermark: opt.Watermark = None,
    learner: opt.Learner = "detector",
    n_components: opt.NComponents = None,
    far: opt.Far = None,
    season: opt.Season = None,
    lags: opt.Lags = None,
    memory: opt.Memory = None,
    gamma: opt.Gamma = None,
    rho: opt.Rho = None,
    beta: opt.Beta = None,
    M: opt.M = None,
    norm: opt.Norm = None,
    idle: opt.Idle = None,
    initial: opt.Initial = None,
    out: opt.Out = None,
    output_format: opt.SparkOutputFormat = "parquet",
    prefix: opt.Prefix = "",
    checkpoint: opt.SparkCheckpoint = None,
    buckets: opt.Partitions = None,
    follow: opt.SparkFollow = True,
    checkpoint_interval: opt.SparkInterval = None,
    files_per_batch: opt.FilesPerBatch = None,
    batch: opt.BatchMode = False,
    log_format: opt.LogFormat = "text",
    config: opt.Config = None,
    master: opt.Master = "local[*]",
    driver_memory: opt.DriverMemory = "4g",
    packages: opt.Packages = None,
    conf: opt.Conf = None,
    spark_log: opt.SparkLog = None,
) -> None:
    """See SCORE_HELP."""
    values = locals()
    from limpet.cli._spark_commands import run_score

    run_score(source, values)


REBUCKET_HELP = """Move a checkpoint to another number of buckets: more of them for more streams or more cores.

Stop the job that uses it first. The next `limpet spark score` on it goes on where the last one was, and gives the \
answers that it would have given.

\b
Example:
  limpet spark rebucket state --buckets 256
"""


@app.command(help=REBUCKET_HELP + EXIT_CODES_HELP)
def rebucket(
    checkpoint: Checkpoint,
    buckets: Annotated[int, typer.Option(min=1, metavar="N", help="How many there shall be.")],
    master: opt.Master = "local[*]",
    driver_memory: opt.DriverMemory = "4g",
    packages: opt.Packages = None,
    conf: opt.Conf = None,
    spark_log: opt.SparkLog = None,
) -> None:
    """See REBUCKET_HELP."""
    values = locals()
    from limpet.cli._spark_commands import run_rebucket

    run_rebucket(checkpoint, buckets, values)


EXPORT_HELP = """Write all streams of a checkpoint to one file, as they were after the last batch.

The file is one of a fleet: lp.load reads it, and `limpet spark score --initial` begins with it.

\b
Examples:
  limpet spark export state fleet.limpet
  python -c "import limpet as lp; print(lp.load('fleet.limpet'))"
"""


@app.command(help=EXPORT_HELP + EXIT_CODES_HELP)
def export(
    checkpoint: Checkpoint,
    path: Annotated[Path, typer.Argument(metavar="FLEET_FILE", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    master: opt.Master = "local[*]",
    driver_memory: opt.DriverMemory = "4g",
    packages: opt.Packages = None,
    conf: opt.Conf = None,
    spark_log: opt.SparkLog = None,
) -> None:
    """See EXPORT_HELP."""
    values = locals()
    from limpet.cli._spark_commands import run_export

    run_export(checkpoint, path, force, values)


STATUS_HELP = """What a checkpoint was begun with, and how far it has come.

Spark is begun only for a checkpoint that is not on this machine.

\b
Examples:
  limpet spark status state
  limpet spark status state --output-format json
"""


@app.command(help=STATUS_HELP + EXIT_CODES_HELP)
def status(
    checkpoint: Checkpoint,
    output_format: opt.OutputFormat = "text",
    master: opt.Master = "local[*]",
    driver_memory: opt.DriverMemory = "4g",
    packages: opt.Packages = None,
    conf: opt.Conf = None,
    spark_log: opt.SparkLog = None,
) -> None:
    """See STATUS_HELP."""
    values = locals()
    from limpet.cli._spark_run import run_status

    run_status(checkpoint, output_format, values)
