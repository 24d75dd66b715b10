"""The commands `limpet spark …`, which import heavy modules when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from limpet.cli.options import OUTPUT_FORMAT, SPARK_SESSION, configurable, with_options

APP_HELP = """Score streams on Spark, and manage their checkpoints.

The learners and the results are those of a fleet, to the last bit. Requires Java 17 and PySpark: \
pip install 'limpet\\[spark]'.

\b
Examples:
  limpet spark score incoming --key sensor --out scored --checkpoint state
  limpet spark status state
  limpet spark repartition state --buckets 256
  limpet spark export state fleet.limpet
"""

app = typer.Typer(help=APP_HELP, no_args_is_help=True)

Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Folder given to --checkpoint.")]


@configurable(app, "spark")
def score(source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source to score.")], **values: Any) -> None:
    """Score a stream on Spark: write every row to --out, with its score and alarms.

    SOURCE is a folder or a pattern such as 'incoming/*.csv' of Parquet, CSV with a header, or JSON lines, or
    kafka://host:9092/topic with JSON messages. Move files into the folder atomically; the oldest are read first.
    Kafka requires --schema, and a batch reads at most a million messages (--option maxOffsetsPerTrigger=…). Invalid
    JSON is written to the column _corrupt_record.

    Every key is a stream with a separate learner. Rows are learned in the order of --time. Rows that are older than
    the last row of their key in an earlier batch are marked `late`, repeated rows `duplicate`, and unusable rows
    `invalid`: they are written, but not learned.

    With the same --checkpoint it resumes exactly where it stopped, also after a crash; no row is lost or counted
    twice. Read the output with Spark, or write Delta: other readers (pandas, DuckDB) also read files of a failed
    attempt. Parameters that do not fit the states of the checkpoint are refused.

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

    SIGTERM and Ctrl-C stop it after the checkpoint is consistent; with --batch no table is written then (a complete
    one has a file _SUCCESS). Exit codes: 0 ended or stopped, 1 Spark's job failed, 2 invalid source or options, 130
    --batch was interrupted.
    """
    from limpet.cli._spark_run import run_score

    run_score(source, values)


@app.command()
@with_options(SPARK_SESSION)
def repartition(
    checkpoint: Checkpoint,
    buckets: Annotated[int, typer.Option(min=1, metavar="N", help="New number of buckets.")],
    **values: Any,
) -> None:
    """Change the number of buckets of a checkpoint, for more streams or more cores.

    Stop the job that uses it first. The next `limpet spark score` on it resumes with the same results.

    \b
    Example:
      limpet spark repartition state --buckets 256


    Exit codes: 0 done, 2 invalid checkpoint or options.
    """
    from limpet.cli._spark_run import run_repartition

    run_repartition(checkpoint, buckets, values)


@app.command()
@with_options(SPARK_SESSION)
def export(
    checkpoint: Checkpoint,
    path: Annotated[Path, typer.Argument(metavar="FLEET_FILE", help="File to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    **values: Any,
) -> None:
    """Export all streams, as of the last committed batch, to one fleet file.

    lp.load reads the file, and `limpet spark score --initial` starts with it.

    \b
    Examples:
      limpet spark export state fleet.limpet
      python -c "import limpet as lp; print(lp.load('fleet.limpet'))"


    Exit codes: 0 done, 2 invalid checkpoint or options.
    """
    from limpet.cli._spark_run import run_export

    run_export(checkpoint, path, force, values)


@app.command()
@with_options(OUTPUT_FORMAT | SPARK_SESSION)
def status(checkpoint: Checkpoint, **values: Any) -> None:
    """Show the job of a checkpoint and its progress.

    Spark is started only for a checkpoint that is not on this machine.

    \b
    Examples:
      limpet spark status state
      limpet spark status state --output-format json


    Exit codes: 0 done, 2 invalid checkpoint or options.
    """
    from limpet.cli._spark_run import run_status

    run_status(checkpoint, values)
