"""`limpet spark …`: what is wrong is told before Spark is begun where it can be; the rest runs in one session."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib import import_module
from types import ModuleType

import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.commands import here, limpet
from helpers.spark import write_files, same_results, same_streams, stream_of
from limpet.cli._spark_io import SparkSource, list_files, make_batch_limits
from limpet.cli._spark_run import read_local_spec
from limpet.cli.config import read_config
from limpet.exceptions import InvalidInputError
from limpet.spark._errors import SparkJobError, convert_job_errors, extract_error_line, friendly_spark_errors
from limpet.spark.filesystem import HADOOP_CONFIG_VARIABLES, may_be_remote
from limpet.spark.session import LOCAL_MASTER_PATTERN, parse_pairs

COLUMNS = ["--key", "sensor", "--columns", "a,b", "--time", "ts"]
BY_HAND = ["--learner", "sra", "--gamma", "4", "--rho", "0.01"]
SCHEMA = "sensor string, ts timestamp, a double, b double"


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Runs a command in a folder of its own: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    for name in HADOOP_CONFIG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return lambda *words: here(["spark", *words], capsys, monkeypatch)


# Without Spark


def test_help_is_at_hand_without_spark(tmp_path):
    code = "import sys; sys.argv[1:] = ['spark', 'score', '--help']; from limpet.cli.main import main\n"
    code += "try: main()\nfinally: print('heavy:', [m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules])"
    told = limpet("spark", "--help").stdout
    for command in ("score", "rebucket", "export", "status", "limpet[spark]"):
        assert command in told
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "heavy: []" in result.stdout
    for flag in ("--checkpoint", "--watermark", "--initial", "--gamma", "--packages", "Exit codes"):
        assert flag in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--out", "o", "--checkpoint", "c"], "--key is missing"),
        (["x", *COLUMNS, "--checkpoint", "c"], "--out is missing"),
        (["x", *COLUMNS, "--out", "o"], "--checkpoint is missing"),
        (["nowhere", *COLUMNS, "--out", "o", "--checkpoint", "c"], "there is no folder nowhere"),
        (["empty", *COLUMNS, "--out", "o", "--checkpoint", "c"], "--schema"),
        (["empty", *COLUMNS, "--out", "o", "--checkpoint", "c", "--schema", SCHEMA], "--input-format"),
        (["mixed", *COLUMNS, "--out", "o", "--checkpoint", "c"], "csv and json"),
        (["x", *COLUMNS, "--out", "x/o", "--checkpoint", "c"], "is in the folder that is read"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "o"], "the same folder"),
        (["x", *COLUMNS, "--out", "x/1.csv", "--batch"], "is in the folder that is read"),
        (["x", *COLUMNS, "--out", "mixed", "--batch"], "is not empty"),
        (["x", *COLUMNS, "--out", "o", "--batch", "--checkpoint", "c"], "does not go with --batch"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--no-follow", "--checkpoint-interval", "1 s"], "do not go together"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--checkpoint-interval", "soon"], "--checkpoint-interval: must be"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--output-format", "orc"], "--output-format: must be"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--buckets", "0"], "--buckets: expected a number from 1"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--option", "sep"], "--option: expected NAME=VALUE"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--conf", "a"], "--conf: expected NAME=VALUE"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--gamma", "-1"], "gamma"),
        (["x", *COLUMNS, "--out", "o", "--checkpoint", "c", "--initial", "f.limpet"], "there is no file f.limpet"),
        (["file:/nowhere", *COLUMNS, "--out", "o", "--checkpoint", "c"], "there is no folder /nowhere"),
        (["hdfs:/days", *COLUMNS, "--out", "o", "--checkpoint", "c"], "--input-format"),
        (["s3a://days", *COLUMNS, "--out", "o", "--checkpoint", "c"], "--input-format"),
        (["kafka://host/topic", *COLUMNS, "--out", "o", "--checkpoint", "c"], "--schema"),
        (["kafka://host", *COLUMNS, "--out", "o", "--checkpoint", "c", "--schema", SCHEMA], "kafka://host:9092/topic"),
        (["socket://host", *COLUMNS, "--out", "o", "--schema", SCHEMA], "socket://host:port"),
        (["socket://host:9", *COLUMNS, "--out", "o", "--schema", SCHEMA, "--no-follow"], "has no end"),
    ],
)
def test_mistakes_are_told_before_spark_is_begun(run, tmp_path, words, message):
    for name, files in {"x": ["1.csv"], "empty": ["_not_read"], "mixed": ["1.csv", "2.jsonl"]}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("sensor,ts,a,b\n")
    code, _, errors = run("score", *words)
    assert (code, len(errors.splitlines())) == (2, 1), errors
    assert message in errors


@pytest.mark.parametrize("words", [["status", "c"], ["export", "c", "f.limpet"], ["rebucket", "c", "--buckets", "3"]])
def test_a_folder_that_is_no_checkpoint(run, words):
    code, _, errors = run(*words)
    assert code == 2
    assert "is no checkpoint" in errors


def test_without_java_or_pyspark(run, tmp_path, monkeypatch):
    (tmp_path / "1.csv").write_text("sensor,ts,a,b\n")
    words = ["score", "1.csv", *COLUMNS, "--out", "o", "--checkpoint", "c"]
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        patch.delenv("JAVA_HOME", raising=False)
        patch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))  # also where it is not installed
        code, _, errors = run(*words)
    assert (code, "openjdk-17" in errors) == (2, True)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    code, _, errors = run(*words)
    assert (code, "limpet[spark]" in errors) == (2, True)


def test_settings_from_a_file_are_those_of_its_table(tmp_path, run):
    text = 'key = "sensor"\nevery = 5.0\n[spark]\nevery = "10 seconds"\nout = "o"\nonce = true\nsource = "nowhere"\n'
    (tmp_path / "x.toml").write_text(text)
    code, _, errors = run("score", "--config", "x.toml")
    assert (code, "--no-follow and --checkpoint-interval do not go together" in errors) == (2, True)
    for line, message in {
        "buckets = 1.5": "a whole number",
        "bucket = 3": "is it 'buckets'",
        "port = 3": "no setting",
    }.items():
        (tmp_path / "x.toml").write_text(f"[spark]\n{line}\n")
        with pytest.raises(InvalidInputError, match=message):
            read_config(tmp_path / "x.toml")


def test_files_are_those_that_spark_reads(tmp_path):
    for name in ("b.csv", "a.csv", "_x.csv", ".y.csv", "day=1/c.csv", "other/d.csv", "_spark_metadata/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [os.path.relpath(file, tmp_path) for file in list_files(str(tmp_path))] == ["a.csv", "b.csv", "day=1/c.csv"]
    assert list_files(f"{tmp_path}/a.*") == [f"{tmp_path}/a.csv"]


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
        ("\n", "something is wrong, and Spark does not say what"),
    ],
)
def test_what_spark_says_in_one_line(text, line):
    assert extract_error_line(text) == line


class Py4JJavaError(Exception):
    """As Spark raises it."""

    __module__ = "py4j.protocol"


class AnalysisException(Py4JJavaError):
    """As Spark raises it."""

    __module__ = "pyspark.errors"


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (Py4JJavaError(": java.io.IOException: No space left."), SparkJobError, "No space left; --spark-log FILE"),
        (ConnectionRefusedError(111, "refused"), SparkJobError, "its process is gone"),
        (AnalysisException("[A] There is no column x."), InvalidInputError, "^There is no column x.$"),
        (Py4JJavaError("Traceback\nlimpet.exceptions.CheckpointError: it is torn"), InvalidInputError, "^it is torn$"),
        (KeyError("of ours"), KeyError, "of ours"),
    ],
)
def test_a_job_that_dies_is_no_mistake_of_settings(error, expected, message):
    with pytest.raises(expected, match=message), friendly_spark_errors(), convert_job_errors(None):
        raise error
    assert (SparkJobError.exit_code, hasattr(InvalidInputError, "exit_code")) == (1, False)


def test_what_runs_on_this_machine():
    cores = {"local": None, "local[3]": "3", "local[*]": "*", "local[2,4]": "2", "local[*, 4]": "*"}
    assert {master: LOCAL_MASTER_PATTERN.fullmatch(master)[1] for master in cores} == cores
    for master in ("local-cluster[2,1,1024]", "local[", "locals", "spark://local:7077", "yarn"):
        assert LOCAL_MASTER_PATTERN.fullmatch(master) is None


def test_what_is_not_on_this_machine_is_left_to_spark(tmp_path, monkeypatch):
    for name in HADOOP_CONFIG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    here = {"master": "local[*]", "conf": None}
    assert not may_be_remote("state", here)
    assert not may_be_remote("file:/state", here)
    assert may_be_remote("hdfs:/state", here)
    assert may_be_remote("state", here | {"master": "yarn"})
    assert may_be_remote("state", here | {"conf": ["spark.hadoop.fs.defaultFS=hdfs://host"]})
    assert read_local_spec("hdfs:/state", here) is None
    assert read_local_spec(str(tmp_path), here | {"master": "yarn"}) is None
    with pytest.raises(InvalidInputError, match="is no checkpoint"):
        read_local_spec(f"file:{tmp_path}", here)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert may_be_remote("state", here)


def test_what_a_batch_takes():
    kafka, files = SparkSource("kafka", "host:9092/x", is_files=False), SparkSource("csv", "in")
    assert make_batch_limits(kafka, None) == {"maxOffsetsPerTrigger": "1000000"}
    assert make_batch_limits(replace(kafka, options={"maxoffsetspertrigger": "5"}), None) == {}
    assert make_batch_limits(files, None) == {"maxBytesPerTrigger": str(256 << 20), "maxFileAge": "36500d"}
    assert make_batch_limits(files, 3) == {"maxFilesPerTrigger": "3", "maxFileAge": "36500d"}
    assert make_batch_limits(replace(files, options={"maxFileAge": "1d"}), 3) == {"maxFilesPerTrigger": "3"}


def test_pairs():
    assert parse_pairs("--conf", None) == {}
    assert parse_pairs("--conf", ["a=1", "b = c=d"]) == {"a": "1", "b": "c=d"}


# With Spark


@pytest.fixture
def fed(tmp_path):
    """A table, in folders of all formats."""
    table = stream_of(n_keys=12, n=2400, seed=3).select(["sensor", "ts", "a", "b"])
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
def test_a_checkpoint_from_its_beginning_to_one_file(spark, tmp_path, run, fed):
    expected = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    answers = expected.process(fed, key="sensor", values=["a", "b"], time="ts")
    words = ["score", "in", *COLUMNS, *BY_HAND, "--checkpoint", "state", "--no-follow", "--files-per-batch", "1"]
    second = (tmp_path / "in" / "001-00.parquet").rename(tmp_path / "later.parquet")
    code, _, errors = run(*words, "--out", "out", "--buckets", "5", "--log-format", "json")
    assert code == 0, errors
    told = [json.loads(line) for line in errors.splitlines()]
    assert [one["rows"] for one in told if "batch" in one] == [1200]
    assert any("5 buckets" in one["message"] for one in told)
    for wrong, message in {
        ("--out", "out", "--buckets", "6"): "this checkpoint has 5 buckets",
        ("--out", "out", "--n-components", "2"): "n_components cannot change",
        ("--out", "out", "--columns", "a,nothing"): "there is no column 'nothing'",
        ("--out", "out", "--schema", "a b c"): "--schema: expected columns such as",
        ("--out", "out", "--output-format", "delta"): "io.delta:delta-spark",
        ("--out", "out", "--checkpoint", "fresh"): "was written with another checkpoint",
    }.items():
        code, _, errors = run(*words, *wrong)
        assert (code, message in errors.splitlines()[-1]) == (2, True), errors
    assert run("rebucket", "state", "--buckets", "3")[0] == 0
    os.utime(second, (1e9, 1e9))  # moved in with the time it was made, years ago
    second.rename(tmp_path / "in" / "001-00.parquet")
    code, _, errors = run(*words, "--out", "out")
    assert (code, "1,200 rows" in errors, "3 buckets" in errors) == (0, True, True), errors
    same_results(pq.read_table(tmp_path / "out"), answers)
    assert (
        json.loads(run("status", "state", "--output-format", "json")[1]).items()
        >= {
            "key": "sensor",
            "values": ["a", "b"],
            "buckets": 3,
            "generation": 2,
            "last_batch": 1,
            "unfinished": False,
        }.items()
    )
    assert "generation 2" in run("status", "state")[1]
    assert "12 streams" in run("export", "state", "fleet.limpet")[1]
    assert "is there already" in run("export", "state", "fleet.limpet")[2]
    same_streams(lp.load(tmp_path / "fleet.limpet"), expected)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_all_at_once_from_separated_values_to_such(spark, tmp_path, run, fed):
    words = [*BY_HAND, "--batch", "--out", "out", "--output-format", "csv"]
    code, _, errors = run("score", "csv/*.csv", *COLUMNS, *words)
    assert (code, "--schema or --option" in errors) == (2, True)  # NaN is nan in these files
    code, _, errors = run("score", "csv/*.csv", *COLUMNS, *words, "--option", "nanValue=nan")
    assert code == 0, errors
    answers = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01)).process(fed, key="sensor", values=["a", "b"], time="ts")
    rows = [row for part in (tmp_path / "out").glob("*.csv") for row in csv.DictReader(part.open(newline=""))]
    rows.sort(key=lambda row: row["ts"])
    assert [row["rejected"] == "true" for row in rows] == answers.sort_by("ts")["rejected"].to_pylist()
    assert rows[1]["ts"] == "2026-03-01T00:00:01.000003Z"
    assert "2,400 rows" in errors


@pytest.mark.spark
def test_a_socket_until_somebody_says_stop(spark, tmp_path, run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def progress():
            return [one for query in spark.streams.active for one in query.recentProgress]

        def serve():
            line, _ = server.accept()
            moments = [f"2026-03-01T00:00:0{i}Z" for i in range(4)]
            told = [json.dumps({"sensor": "x", "ts": moment, "a": 1.0, "b": 2.0}) for moment in moments]
            line.sendall(("\n".join([*told, "{not JSON"]) + "\n").encode())
            end = time.monotonic() + 60
            while time.monotonic() < end and sum(one.numInputRows for one in progress()) < 5:
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=serve, daemon=True).start()
        words = ["--schema", SCHEMA, *BY_HAND, "--out", "out", "--output-format", "json"]
        code, _, errors = run("score", f"socket://127.0.0.1:{port}", *COLUMNS, *words)
    assert (code, "stopped after 5 rows: 0 rejected, 1 invalid" in errors) == (0, True), errors
    rows = [json.loads(line) for part in (tmp_path / "out").glob("*.json") for line in part.read_text().splitlines()]
    assert [row["_corrupt_record"] for row in rows if row["invalid"]] == ["{not JSON"]
    assert len(rows) == 5
    assert not any("_corrupt_record" in row for row in rows if not row["invalid"])


@pytest.mark.spark
def test_a_table_until_somebody_says_stop(spark, tmp_path, run, fed, monkeypatch):
    # As if it had been said while Spark starts.
    monkeypatch.setattr(import_module("limpet.cli._spark_commands"), "stop_on_signals", lambda stop: stop.set())
    monkeypatch.setattr(import_module("limpet.cli._spark_run"), "POLL_INTERVAL_S", 0.01)
    code, _, errors = run("score", "in", *COLUMNS, *BY_HAND, "--batch", "--out", "out")
    assert (code, "interrupted: there is no table" in errors) == (130, True), errors
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_kafka_needs_its_package(spark, run):
    words = ["--schema", SCHEMA, "--out", "out", "--checkpoint", "state"]
    code, _, errors = run("score", "kafka://127.0.0.1/sensors", *COLUMNS, *words)
    assert (code, "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:" in errors) == (2, True)
