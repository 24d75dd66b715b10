"""`limpet spark …`: invalid options are errors before Spark starts; the other tests share one session."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from importlib import import_module
from types import ModuleType

import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.commands import run_in_process, run_limpet
from helpers.spark import assert_same_results, assert_same_streams, make_table, write_files
from limpet.cli._spark_io import SparkSource, iter_files, make_batch_limits
from limpet.cli._spark_run import find_local
from limpet.cli.options import read_config
from limpet.exceptions import InvalidInputError
from limpet.spark._errors import SparkJobError, convert_job_errors, extract_error_line, friendly_spark_errors
from limpet.spark.filesystem import HADOOP_CONFIG_VARIABLES, may_be_remote
from limpet.spark.session import LOCAL_MASTER_PATTERN, parse_pairs

COLUMN_FLAGS = ["--key", "sensor", "--columns", "a,b", "--time", "ts"]
STREAM_FLAGS = [*COLUMN_FLAGS, "--out", "o", "--checkpoint", "c"]
SRA_FLAGS = ["--learner", "sra", "--gamma", "4", "--rho", "0.01"]
SCHEMA = "sensor string, ts timestamp, a double, b double"


@pytest.fixture
def run_spark(tmp_path, capsys, monkeypatch):
    """Run a command in a new folder; return exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    for name in HADOOP_CONFIG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return lambda *words: run_in_process(["spark", *words], capsys, monkeypatch)


# Without Spark


def test_help_works_without_spark(tmp_path):
    code = "import sys; sys.argv[1:] = ['spark', 'score', '--help']; from limpet.cli.main import main\n"
    code += "try: main()\nfinally: print('heavy:', [m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules])"
    text = run_limpet("spark", "--help").stdout
    for command in ("score", "repartition", "export", "status", "limpet[spark]"):
        assert command in text
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "heavy: []" in result.stdout
    for flag in ("--checkpoint", "--watermark", "--initial", "--gamma", "--packages", "Exit codes"):
        assert flag in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--out", "o", "--checkpoint", "c"], "--key: is required"),
        (["x", *COLUMN_FLAGS, "--checkpoint", "c"], "--out: is required"),
        (["x", *COLUMN_FLAGS, "--out", "o"], "--checkpoint: is required"),
        (
            ["nowhere", *STREAM_FLAGS],
            "SOURCE: must be an existing file or folder, got nowhere",
        ),
        (["empty", *STREAM_FLAGS], "--schema"),
        (["empty", *STREAM_FLAGS, "--schema", SCHEMA], "--input-format"),
        (["mixed", *STREAM_FLAGS], "csv and json"),
        (["x", *COLUMN_FLAGS, "--out", "x/o", "--checkpoint", "c"], "must not be in the folder of the source"),
        (["x", *COLUMN_FLAGS, "--out", "o", "--checkpoint", "o"], "--out: must not be the folder of --checkpoint"),
        (["x", *COLUMN_FLAGS, "--out", "x/1.csv", "--batch"], "must not be in the folder of the source"),
        (["x", *COLUMN_FLAGS, "--out", "mixed", "--batch"], "--out: must be a new or empty folder"),
        (
            ["x", *COLUMN_FLAGS, "--out", "o", "--batch", "--checkpoint", "c"],
            "--checkpoint: must not be given with --batch",
        ),
        (
            ["x", *STREAM_FLAGS, "--no-follow", "--checkpoint-interval", "1 s"],
            "--no-follow: must not be given with",
        ),
        (
            ["x", *STREAM_FLAGS, "--checkpoint-interval", "soon"],
            "--checkpoint-interval: must be",
        ),
        (["x", *STREAM_FLAGS, "--output-format", "orc"], "--output-format: must be"),
        (["x", *STREAM_FLAGS, "--buckets", "0"], "--buckets: must be"),
        (["x", *STREAM_FLAGS, "--option", "sep"], "--option: must be NAME=VALUE"),
        (["x", *STREAM_FLAGS, "--conf", "a"], "--conf: must be NAME=VALUE"),
        (["x", *STREAM_FLAGS, "--gamma", "-1"], "gamma"),
        (
            ["x", *STREAM_FLAGS, "--initial", "f.limpet"],
            "--initial: must be an existing file, got f.limpet",
        ),
        (
            ["file:/nowhere", *STREAM_FLAGS],
            "SOURCE: must be an existing file or folder, got /nowhere",
        ),
        (["hdfs:/days", *STREAM_FLAGS], "--input-format"),
        (["s3a://days", *STREAM_FLAGS], "--input-format"),
        (["kafka://host/topic", *STREAM_FLAGS], "--schema"),
        (["kafka://host", *STREAM_FLAGS, "--schema", SCHEMA], "kafka://host:9092/topic"),
    ],
)
def test_invalid_options_are_errors_before_spark_starts(run_spark, tmp_path, words, message):
    for name, files in {"x": ["1.csv"], "empty": ["_not_read"], "mixed": ["1.csv", "2.jsonl"]}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("sensor,ts,a,b\n")
    code, _, errors = run_spark("score", *words)
    assert (code, len(errors.splitlines())) == (2, 1), errors
    assert message in errors


@pytest.mark.parametrize("words", [["status"], ["export", "f.limpet"], ["repartition", "--buckets", "3"]])
def test_folder_without_a_checkpoint_is_an_error(run_spark, words):
    code, _, errors = run_spark(words[0], "c", *words[1:])
    assert code == 2
    assert "CHECKPOINT: must be a checkpoint" in errors


def test_missing_java_or_pyspark_is_an_error(run_spark, tmp_path, monkeypatch):
    (tmp_path / "1.csv").write_text("sensor,ts,a,b\n")
    words = ["score", "1.csv", *STREAM_FLAGS]
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        patch.delenv("JAVA_HOME", raising=False)
        patch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))  # also where it is not installed
        code, _, errors = run_spark(*words)
    assert (code, "openjdk-17" in errors) == (2, True)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    code, _, errors = run_spark(*words)
    assert (code, "limpet[spark]" in errors) == (2, True)


def test_options_are_read_from_the_spark_table(tmp_path, run_spark):
    text = 'key = "sensor"\ncheckpoint_interval = 5.0\nsource = "nowhere"\n[spark]\ncheckpoint_interval = "10s"\n'
    text += 'out = "o"\ncheckpoint = "c"\nfollow = false\n'
    (tmp_path / "x.toml").write_text(text)
    code, _, errors = run_spark("score", "--config", "x.toml")
    assert (code, "--no-follow: must not be given with --checkpoint-interval" in errors) == (2, True)
    for line, message in {
        "buckets = 1.5": "buckets: must be an integer",
        "bucket = 3": "Did you mean 'buckets'",
        "port = 3": "port: is not an option",
    }.items():
        (tmp_path / "x.toml").write_text(f"[spark]\n{line}\n")
        with pytest.raises(InvalidInputError, match=message):
            read_config(tmp_path / "x.toml")


def test_iter_files_lists_the_files_that_spark_reads(tmp_path):
    for name in ("b.csv", "a.csv", "_x.csv", ".y.csv", "day=1/c.csv", "other/d.csv", "_spark_metadata/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [os.path.relpath(file, tmp_path) for file in iter_files(str(tmp_path))] == ["a.csv", "b.csv", "day=1/c.csv"]
    assert list(iter_files(f"{tmp_path}/a.*")) == [f"{tmp_path}/a.csv"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[A_B.C] It is so. SQLSTATE: 42601 (line 1, pos 4)\n\n== SQL ==\nx", "It is so. (line 1, pos 4)"),
        ("An error occurred while calling o1.load.\n: java.io.IOException: no disk\n\tat a.B.c(D.java:1)", "no disk"),
        (
            "[STREAM_FAILED] Query [id = 1-2, runId = 3-4] terminated with exception: Job aborted: Traceback (most "
            'recent call last):\n  File "x.py", line 1\nlimpet.exceptions.CheckpointError: of version 9\n\n\tat x.Y(Z)',
            "of version 9",
        ),
        ('Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 3\n', "KeyError: 3"),
        ("\n", "Spark gave no reason"),
    ],
)
def test_errors_of_spark_are_reduced_to_one_line(text, line):
    assert extract_error_line(text) == line


class Py4JJavaError(Exception):
    """The class that Spark raises."""

    __module__ = "py4j.protocol"


class AnalysisException(Py4JJavaError):
    """The class that Spark raises."""

    __module__ = "pyspark.errors"


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (Py4JJavaError(": java.io.IOException: No space left."), SparkJobError, "No space left. The option spark_log"),
        (ConnectionRefusedError(111, "refused"), SparkJobError, "its process ended"),
        (AnalysisException("[A] Column x is missing."), InvalidInputError, "^Column x is missing.$"),
        (Py4JJavaError("Traceback\nlimpet.exceptions.CheckpointError: it is torn"), InvalidInputError, "^it is torn$"),
        (KeyError("of ours"), KeyError, "of ours"),
    ],
)
def test_a_failed_job_has_another_exit_code(error, expected, message):
    with pytest.raises(expected, match=message), friendly_spark_errors(), convert_job_errors(None):
        raise error
    assert (SparkJobError.exit_code, hasattr(InvalidInputError, "exit_code")) == (1, False)


def test_pattern_of_local_masters():
    cores = {"local": None, "local[3]": "3", "local[*]": "*", "local[2,4]": "2", "local[*, 4]": "*"}
    assert {master: LOCAL_MASTER_PATTERN.fullmatch(master)[1] for master in cores} == cores
    for master in ("local-cluster[2,1,1024]", "local[", "locals", "spark://local:7077", "yarn"):
        assert LOCAL_MASTER_PATTERN.fullmatch(master) is None


def test_remote_checkpoints_are_recognized(tmp_path, monkeypatch):
    for name in HADOOP_CONFIG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    local_session = {"master": "local[*]", "conf": None}
    assert not may_be_remote("state", local_session)
    assert not may_be_remote("file:/state", local_session)
    assert may_be_remote("hdfs:/state", local_session)
    assert may_be_remote("state", local_session | {"master": "yarn"})
    assert may_be_remote("state", local_session | {"conf": ["spark.hadoop.fs.defaultFS=hdfs://host"]})
    assert find_local("hdfs:/state", local_session) is None
    assert find_local(str(tmp_path), local_session | {"master": "yarn"}) is None
    with pytest.raises(InvalidInputError, match="CHECKPOINT: must be"):
        find_local(f"file:{tmp_path}", local_session)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert may_be_remote("state", local_session)


def test_batch_limits():
    kafka, files = SparkSource("kafka", "host:9092/x"), SparkSource("csv", "in")
    assert make_batch_limits(kafka, None) == {"maxOffsetsPerTrigger": "1000000"}
    assert make_batch_limits(replace(kafka, options={"maxoffsetspertrigger": "5"}), None) == {}
    assert make_batch_limits(files, None) == {"maxBytesPerTrigger": str(256 << 20), "maxFileAge": "36500d"}
    assert make_batch_limits(files, 3) == {"maxFilesPerTrigger": "3", "maxFileAge": "36500d"}
    assert make_batch_limits(replace(files, options={"maxFileAge": "1d"}), 3) == {"maxFilesPerTrigger": "3"}


def test_pairs_of_options():
    assert parse_pairs("--conf", None) == {}
    assert parse_pairs("--conf", ["a=1", "b = c=d"]) == {"a": "1", "b": "c=d"}


# With Spark


@pytest.fixture
def input_table(tmp_path):
    """A table, in folders of several formats."""
    table = make_table(n_keys=12, n=2400, seed=3).select(["sensor", "ts", "a", "b"])
    write_files(tmp_path / "in", table, 2)
    rows = table.to_pylist()
    (tmp_path / "csv").mkdir()
    with (tmp_path / "csv" / "1.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table.column_names)
        writer.writeheader()
        writer.writerows({**row, "ts": row["ts"].isoformat()} for row in rows)
    return table


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_score_repartition_status_and_export(spark, tmp_path, run_spark, input_table):
    expected = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    results = expected.process(input_table, key="sensor", values=["a", "b"], time="ts")
    words = ["score", "in", *COLUMN_FLAGS, *SRA_FLAGS, "--checkpoint", "state", "--no-follow", "--files-per-batch", "1"]
    second = (tmp_path / "in" / "001-00.parquet").rename(tmp_path / "later.parquet")
    code, _, errors = run_spark(*words, "--out", "out", "--buckets", "5", "--log-format", "json")
    assert code == 0, errors
    records = [json.loads(line) for line in errors.splitlines()]
    assert [record["rows"] for record in records if "batch" in record] == [1200]
    assert any("5 buckets" in record["message"] for record in records)
    for wrong, message in {
        ("--out", "out", "--buckets", "6"): "buckets: must be 5",
        ("--out", "out", "--n-components", "2"): "learner: n_components must remain",
        ("--out", "out", "--columns", "a,nothing"): "got 'nothing'",
        ("--out", "out", "--schema", "a b c"): "--schema: must be columns",
        ("--out", "out", "--output-format", "delta"): "io.delta:delta-spark",
        ("--out", "out", "--checkpoint", "fresh"): "was written with another checkpoint",
    }.items():
        code, _, errors = run_spark(*words, *wrong)
        assert (code, message in errors.splitlines()[-1]) == (2, True), errors
    assert run_spark("repartition", "state", "--buckets", "3")[0] == 0
    os.utime(second, (1e9, 1e9))  # moved in with an old modification time
    second.rename(tmp_path / "in" / "001-00.parquet")
    code, _, errors = run_spark(*words, "--out", "out")
    assert (code, "1,200 rows" in errors, "3 buckets" in errors) == (0, True, True), errors
    assert_same_results(pq.read_table(tmp_path / "out"), results)
    assert (
        json.loads(run_spark("status", "state", "--output-format", "json")[1]).items()
        >= {
            "key": "sensor",
            "values": ["a", "b"],
            "buckets": 3,
            "generation": 2,
            "last_batch": 1,
            "pending_batch": None,
        }.items()
    )
    assert re.search("generation +2", run_spark("status", "state")[1])
    assert "12 streams" in run_spark("export", "state", "fleet.limpet")[1]
    assert "FLEET_FILE: must be a new file" in run_spark("export", "state", "fleet.limpet")[2]
    assert_same_streams(lp.load(tmp_path / "fleet.limpet"), expected)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_csv_batch_to_csv(spark, tmp_path, run_spark, input_table):
    words = [*SRA_FLAGS, "--batch", "--out", "out", "--output-format", "csv"]
    code, _, errors = run_spark("score", "csv/*.csv", *COLUMN_FLAGS, *words)
    assert (code, "--schema or --option" in errors) == (2, True)  # NaN is nan in these files
    code, _, errors = run_spark("score", "csv/*.csv", *COLUMN_FLAGS, *words, "--option", "nanValue=nan")
    assert code == 0, errors
    results = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01)).process(input_table, key="sensor", values=["a", "b"], time="ts")
    rows = [row for part in (tmp_path / "out").glob("*.csv") for row in csv.DictReader(part.open(newline=""))]
    rows.sort(key=lambda row: row["ts"])
    assert [row["rejected"] == "true" for row in rows] == results.sort_by("ts")["rejected"].to_pylist()
    assert rows[1]["ts"] == "2026-03-01T00:00:01.000003Z"
    assert "2,400 rows" in errors


@pytest.mark.spark
def test_stream_runs_until_a_signal(spark, tmp_path, run_spark):
    (tmp_path / "in").mkdir()
    times = [f"2026-03-01T00:00:0{i}Z" for i in (0, 1, 1, 2)]
    lines = [json.dumps({"sensor": "x", "ts": time, "a": 1.0, "b": 2.0}) for time in times]
    (tmp_path / "in" / "1.jsonl").write_text("\n".join([*lines, "{not JSON"]) + "\n")

    ended = threading.Event()

    def stop_after_all_rows():
        while not ended.wait(0.1):
            progress = [report for query in spark.streams.active for report in query.recentProgress]
            if sum(report.numInputRows for report in progress) >= 5:
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=stop_after_all_rows, daemon=True).start()
    words = ["--schema", SCHEMA, *SRA_FLAGS, "--out", "out", "--checkpoint", "state", "--output-format", "json"]
    try:
        code, _, errors = run_spark("score", "in", *COLUMN_FLAGS, *words)
    finally:
        ended.set()
    assert (code, "stopped after 5 rows: 0 rejected, 1 invalid, 0 late, 1 duplicate" in errors) == (0, True), errors
    rows = [json.loads(line) for part in (tmp_path / "out").glob("*.json") for line in part.read_text().splitlines()]
    assert [row["_corrupt_record"] for row in rows if row["invalid"]] == ["{not JSON"]
    assert len(rows) == 5
    assert not any("_corrupt_record" in row for row in rows if not row["invalid"])


@pytest.mark.spark
def test_interrupted_batch_writes_no_table(spark, tmp_path, run_spark, input_table, monkeypatch):
    # As if the signal came while Spark starts.
    monkeypatch.setattr(import_module("limpet.cli._spark_run"), "stop_on_signals", lambda stop: stop.set())
    monkeypatch.setattr(import_module("limpet.cli._spark_run"), "POLL_INTERVAL_S", 0.01)
    code, _, errors = run_spark("score", "in", *COLUMN_FLAGS, *SRA_FLAGS, "--batch", "--out", "out")
    assert (code, "interrupted: no table" in errors) == (130, True), errors
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_kafka_requires_its_package(spark, run_spark):
    words = ["--schema", SCHEMA, "--out", "out", "--checkpoint", "state"]
    code, _, errors = run_spark("score", "kafka://127.0.0.1/sensors", *COLUMN_FLAGS, *words)
    assert (
        code,
        "--packages: must have Spark's for Kafka. Give org.apache.spark:spark-sql-kafka-0-10_2.13:" in errors,
    ) == (2, True)
