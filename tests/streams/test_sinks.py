"""Files of lines, SQLite and standard output as sinks: output and truncation to an offset."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limpet as lp
from limpet.detection.alarm import Alarm
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.learners.results import Trace
from limpet.streams.batch import Batch
from limpet.streams.results import ALARM_COLUMNS, ALARMS_TABLE, POINTS_TABLE, BatchResult, dedupe_names
from limpet.streams.sinks.base import BaseSink, CallbackSink, MultiSink
from limpet.streams.sinks.files import CsvFile, JsonLinesFile
from limpet.streams.sinks.sqlite import SqliteSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.sinks.webhook import WebhookSink
from limpet.streams.sources.base import BaseSource
from limpet.streams.uri import open_sink

N = 10
UNUSUAL_TEXT = 'a "quoted", text\nof two lines; \r\t\x1b[2J é 東 \ud800 \0 end'
SQL_INJECTION = 'x"; drop table points; --'
UNUSUAL_NAMES = ("a", "A", "n", "N_", "record", "Score", "score_", SQL_INJECTION, "", "two\nlines", "half \ud800", "\0")


def results(first: int, names: tuple[str, ...] = ("a", "b"), text: str = "k", n: int = N) -> BatchResult:
    """n points of two streams; one raises an alarm of infinite size, one has no value, one is infinite."""
    rng = np.random.default_rng(first)
    values = rng.normal(size=(n, len(names)))
    values[1, 0], values[2, -1] = np.nan, -np.inf
    score = rng.normal(size=n) * 1e-300
    score[3] = np.nan
    alarm = Alarm("change", first + 4, first + 2, np.inf, "up", (names[0],), 1e-7, text)
    outcomes, auto_scores = rng.integers(0, 3, n).astype(np.int8), (np.full(n, np.nan), rng.random(n))
    trace = Trace(score, outcomes, auto_scores=auto_scores, alarms=[alarm], explicit_alarm_index=[4])
    times = (1_500_000_000 * np.arange(first, first + n)).view("datetime64[ns]")
    batch = Batch(values, first + n, names, [f"{text}{i % 2}" for i in range(n)], times, tz_aware=True)  # type: ignore[arg-type]
    return BatchResult(batch, trace, first, first, first // n)


def read_rows(path: Path, table: str = POINTS_TABLE) -> list[dict[str, Any]]:
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f"select * from {table} order by n")]


def write_results(path: Path, table: str, *all_results: BatchResult) -> Path:
    sink = open_sink(str(path), table)
    sink.truncate_to(None)
    for batch in all_results:
        sink.write(batch)
    sink.flush()
    sink.close()
    return path


# Output


def test_json_lines(tmp_path: Path) -> None:
    points = [
        json.loads(line)
        for line in write_results(tmp_path / "p.jsonl", POINTS_TABLE, results(0)).read_text().splitlines()
    ]
    expected = results(0)
    assert [row["record"] for row in points] == list(range(N))
    assert points[1] | {"a": None} == points[1]
    assert points[2]["b"] is None
    assert points[3]["score"] is None
    assert [row["a"] for row in points[4:]] == expected.batch.values[4:, 0].tolist()
    assert points[0]["score"] == expected.trace.score[0]
    assert (points[1]["time"], points[1]["key"], points[1]["invalid"]) == (
        "1970-01-01T00:00:01.500Z",
        "k1",
        bool(expected.trace.invalid[1]),
    )
    (alarm,) = map(json.loads, write_results(tmp_path / "a.jsonl", ALARMS_TABLE, results(20)).read_text().splitlines())
    assert tuple(alarm) == ALARM_COLUMNS
    assert (alarm["record"], alarm["size"], alarm["variables"], alarm["p_value"]) == (24, None, ["a"], 1e-7)
    assert (alarm["key"], alarm["row"], alarm["onset"], alarm["time"]) == ("k", 24, 22, "1970-01-01T00:00:36Z")
    assert alarm["message"].startswith("a up")


def test_separated_values(tmp_path: Path) -> None:
    def rows(path: Path) -> list[dict[str, str]]:
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    points = rows(write_results(tmp_path / "p.csv", POINTS_TABLE, results(0), results(N)))
    expected = results(N)
    assert [float(row["a"]) for row in points[N + 2 :]] == expected.batch.values[2:, 0].tolist()
    assert (points[1]["a"], points[2]["b"], points[3]["score"]) == ("", "", "")
    assert [row["invalid"] for row in points[N:]] == [str(int(flag)) for flag in expected.trace.invalid]
    assert [int(row["record"]) for row in points] == list(range(2 * N))
    (alarm,) = rows(write_results(tmp_path / "a.csv", ALARMS_TABLE, results(0)))
    assert (alarm["variables"], alarm["size"]) == ("a", "")
    nothing = results(0)
    nothing.trace.alarms.clear()
    nothing.trace.explicit_alarm_index.clear()  # type: ignore[union-attr]
    assert write_results(tmp_path / "b.csv", ALARMS_TABLE, nothing).read_text() == ",".join(ALARM_COLUMNS) + "\n"


def test_sqlite_database(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    sink = SqliteSink(path)
    for first in (0, N):
        sink.write(results(first))
    points, alarms = read_rows(path), read_rows(path, ALARMS_TABLE)
    assert [row["n"] for row in points] == [row["record"] for row in points] == list(range(2 * N))
    assert [row["a"] for row in points[4:N]] == results(0).batch.values[4:, 0].tolist()
    assert (points[1]["a"], points[2]["b"], points[3]["score"]) == (None, None, None)
    assert [row["invalid"] for row in points[:N]] == results(0).trace.invalid.astype(int).tolist()
    assert [(row["n"], row["record"], row["size"], row["variables"]) for row in alarms] == [
        (0, 4, None, "a"),
        (1, 14, None, "a"),
    ]
    assert sink.flush()["rows"] == {ALARMS_TABLE: 2, POINTS_TABLE: 2 * N}
    sink.close()


def test_standard_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    StdoutSink().write(results(0, text=UNUSUAL_TEXT))
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert "\x1b" not in output  # a key does not clear the screen
    assert output.startswith('1970-01-01T00:00:06Z a "quoted", text?of two lines')
    StdoutSink(form="json").write(results(0, text=UNUSUAL_TEXT))
    assert json.loads(capsys.readouterr().out)["key"] == UNUSUAL_TEXT.replace("\ud800", "?")
    StdoutSink(POINTS_TABLE).write(results(0))
    assert len(capsys.readouterr().out.splitlines()) == N
    with open("/dev/null", "w", encoding="ascii") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        StdoutSink().write(results(0, text=UNUSUAL_TEXT))


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.db"])
def test_unusual_strings_and_names(tmp_path: Path, name: str) -> None:
    written_path = write_results(tmp_path / name, POINTS_TABLE, results(0, UNUSUAL_NAMES, UNUSUAL_TEXT))
    if name == "x.db":
        rows = read_rows(written_path)
    elif name == "x.csv":
        with open(written_path, newline="") as file:
            rows = list(csv.DictReader(file))  # type: ignore[arg-type]
    else:
        rows = [json.loads(line) for line in written_path.read_text().split("\n")[:-1]]
    assert len(rows) == N
    assert rows[0]["key"] == UNUSUAL_TEXT.replace("\ud800", "?") + "0"
    begin = list(rows[5]).index("key") + 1
    values = list(rows[5].values())[begin : begin + len(UNUSUAL_NAMES)]
    assert [float(value) for value in values] == results(0, UNUSUAL_NAMES).batch.values[5].tolist()
    assert [int(row["record"]) for row in rows] == list(range(N))
    assert float(rows[4]["score"]) == results(0, UNUSUAL_NAMES).trace.score[4]
    alarm = write_results(tmp_path / f"alarms{Path(name).suffix}", ALARMS_TABLE, results(0, ("\ud800",), UNUSUAL_TEXT))
    assert alarm.stat().st_size > 0


def test_unique_names() -> None:
    columns = results(0, UNUSUAL_NAMES).point_columns()
    assert len(columns) == len(UNUSUAL_NAMES) + 10
    assert len({name.lower() for name in columns}) == len(columns)
    assert np.array_equal(columns["record"], np.arange(N))
    assert dedupe_names(["a", "a", "A"], []) == ["a", "a_", "A__"]
    wide = [f"x{i}" for i in range(5000)]
    assert dedupe_names(wide, ["score"]) == wide


def test_missing_times_are_null(tmp_path: Path) -> None:
    for times in (np.array([1.0, np.nan, np.inf]), np.array(["2024", "NaT", "2025"], "datetime64[ns]")):
        batch = BatchResult(Batch([1.0, 2.0, 3.0], times=times), Trace(np.zeros(3), np.zeros(3, np.int8)))
        path = write_results(tmp_path / f"{times.dtype.kind}.jsonl", POINTS_TABLE, batch)
        lines = [json.loads(line)["time"] for line in path.read_text().splitlines()]
        assert lines[1] is None
        assert lines[0] in (1, "2024-01-01T00:00:00")


# Truncation


def read_content(path: Path) -> Any:
    if path.suffix == ".db":
        return read_rows(path), read_rows(path, ALARMS_TABLE)
    return path.read_bytes()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: JsonLinesFile(path / "x.jsonl", POINTS_TABLE),
        lambda path: CsvFile(path / "x.csv", POINTS_TABLE),
        lambda path: CsvFile(path / "x.csv", ALARMS_TABLE),
        lambda path: SqliteSink(path / "x.db"),
    ],
)
def test_results_are_truncated_to_any_offset(tmp_path: Path, make: Callable[[Path], BaseSink]) -> None:
    all_results = [results(N * i) for i in range(5)]
    whole = make(tmp_path)
    path: Path = whole.path  # type: ignore[attr-defined]
    whole.truncate_to(None)
    for batch in all_results:
        whole.write(batch)
    whole.close()
    expected = read_content(path)
    for n_flushed in range(len(all_results) + 1):
        for n_written in range(n_flushed, len(all_results) + 1):  # how far it had come when it was killed
            folder = tmp_path / f"{n_flushed} {n_written}"
            folder.mkdir()
            killed = make(folder)
            killed.truncate_to(None)
            killed.acquire()
            offset = killed.flush()
            for i, batch in enumerate(all_results[:n_written]):
                killed.write(batch)
                if i < n_flushed:
                    offset = killed.flush()
            killed.close()
            again = make(folder)
            again.truncate_to(json.loads(json.dumps(offset)))
            for batch in all_results[n_flushed:]:
                again.write(batch)
            again.flush()
            again.close()
            assert read_content(folder / path.name) == expected
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{path.name}{suffix}").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="of the checkpoint, got 0"):
        make(folder).truncate_to(offset)


def test_an_incomplete_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    sink = JsonLinesFile(path, POINTS_TABLE)
    sink.write(results(0))
    offset = sink.flush()
    sink.close()
    with open(path, "ab") as file:
        file.write(b'{"record": 1')  # as a power failure leaves it
    again = JsonLinesFile(path, POINTS_TABLE)
    again.truncate_to(offset)
    again.write(results(N))
    assert [json.loads(line)["record"] for line in path.read_text().splitlines()] == list(range(2 * N))


# Ownership

PATHS = ["x.jsonl", "x.csv", "x.db"]


def write_until_killed(path: Path, *all_results: BatchResult) -> Any:
    """Write results with checkpoints; return the offset before the last batch, as after a kill."""
    sink = open_sink(str(path), POINTS_TABLE)
    sink.truncate_to(None)
    sink.acquire()
    offset = sink.flush()
    for batch in all_results:
        sink.write(batch)
        offset = offset if batch is all_results[-1] else sink.flush()
    sink.close()
    return json.loads(json.dumps(offset))


def bytes_or_rows(path: Path) -> Any:
    return read_rows(path) if path.suffix == ".db" else path.read_bytes()


def resume(path: Path, offset: Any) -> None:
    sink = open_sink(str(path), POINTS_TABLE)
    sink.truncate_to(offset)
    sink.close()


@pytest.mark.parametrize("name", PATHS)
def test_a_run_with_checkpoints_owns_its_results(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    offset = write_until_killed(path, results(0), results(N))
    before = bytes_or_rows(path)
    with pytest.raises(InvalidInputError, match=r"another checkpoint folder.* Use another file"):
        write_results(path, POINTS_TABLE, results(50))
    with pytest.raises(InvalidInputError, match="another checkpoint folder"):
        write_until_killed(path, results(50))
    assert bytes_or_rows(path) == before
    resume(path, offset)
    assert len(bytes_or_rows(path)) < len(before)


@pytest.mark.parametrize("name", PATHS)
def test_results_of_another_run_are_not_truncated(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    first = write_until_killed(path)  # it has written nothing, so another run may
    second = write_until_killed(path, results(0), results(N))
    before = bytes_or_rows(path)
    with pytest.raises(CheckpointError, match="another run has written to it since the checkpoint"):
        resume(path, first)
    assert bytes_or_rows(path) == before
    resume(path, second)


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_offset_of_another_file_raises(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    offset = write_until_killed(path, results(0), results(N))
    sink = open_sink(str(path), POINTS_TABLE, overwrite=True)  # as `detect` does
    for i in range(1, 9):
        sink.write(results(100 * i))
    sink.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="must be the file of the checkpoint"):
        resume(path, offset)
    assert path.read_bytes() == before
    write_results(path, POINTS_TABLE, results(N))  # without an owner: any run may append
    path.unlink()
    write_until_killed(path, results(0))
    path.unlink()
    write_results(path, POINTS_TABLE, results(N))  # without the file it has no owner


@pytest.mark.parametrize("name", PATHS)
def test_runs_without_checkpoints_append(tmp_path: Path, name: str) -> None:
    for first in (0, N, 2 * N):
        write_results(tmp_path / name, POINTS_TABLE, results(first))
    path = tmp_path / name
    rows = read_rows(path) if name == "x.db" else path.read_text().splitlines()[name == "x.csv" :]
    assert len(rows) == 3 * N
    assert len(list(tmp_path.iterdir())) == 1 or name == "x.db"


@pytest.mark.parametrize("name", PATHS)
def test_truncate_to_alone_does_not_acquire_the_file(tmp_path: Path, name: str) -> None:
    sink = open_sink(str(tmp_path / name), POINTS_TABLE)  # of a run without checkpoints that has written nothing
    sink.truncate_to(None)
    sink.flush()
    sink.write(results(0))
    sink.close()
    write_results(tmp_path / name, POINTS_TABLE, results(N))
    assert len(read_rows_or_lines(tmp_path / name)) == 2 * N


def read_rows_or_lines(path: Path) -> list[Any]:
    if path.suffix == ".db":
        return read_rows(path)
    return path.read_text(encoding="utf-8").splitlines()[path.suffix == ".csv" :]


@pytest.mark.parametrize("name", PATHS)
def test_concurrent_runs_on_one_file_raise(tmp_path: Path, name: str) -> None:
    first, second = (open_sink(str(tmp_path / name), POINTS_TABLE) for _ in range(2))
    first.truncate_to(None)
    first.write(results(0))
    before = bytes_or_rows(tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"another run"):
        second.write(results(N))
    assert bytes_or_rows(tmp_path / name) == before
    first.write(results(N))
    with pytest.raises(InvalidInputError, match=rf"sink: .*points in .*{name} twice"):
        MultiSink([open_sink(str(tmp_path / name), POINTS_TABLE) for _ in range(2)]).truncate_to(None)


class Numbers(BaseSource):
    """Points that end, or end with an error."""

    def __init__(self, n: int, whole: bool = True) -> None:
        self.n, self.whole = n, whole

    def read(self, position: Any) -> Any:
        for first in range(position or 0, self.n, 100):
            yield Batch(np.random.default_rng(first).normal(size=100), position=first + 100)
        if not self.whole:
            raise InvalidInputError("broken off")


@pytest.mark.parametrize("name", PATHS)
def test_two_runs_with_checkpoints_and_the_same_sink_raise(tmp_path: Path, name: str) -> None:
    def run(source: Numbers, checkpoint: str, file_name: str = name) -> None:
        sinks = [open_sink(str(tmp_path / file_name), POINTS_TABLE), open_sink(str(tmp_path / "a.jsonl"))]
        lp.run(source, lp.SRA(rho=0.01, gamma=4.0), sinks, tmp_path / checkpoint, checkpoint_interval=1e9)

    with pytest.raises(InvalidInputError, match="broken off"):
        run(Numbers(500, whole=False), "one")  # the offset is that of the beginning
    before = bytes_or_rows(tmp_path / name)
    assert len(before) > 1
    with pytest.raises(InvalidInputError, match="another checkpoint folder"):
        run(Numbers(300), "two")
    (tmp_path / "mine.jsonl").write_text("mine")
    with pytest.raises(CheckpointError, match=rf"sink points in .*{name}, got points in .*mine\.jsonl"):
        run(Numbers(300), "one", "mine.jsonl")
    assert bytes_or_rows(tmp_path / name) == before
    assert (tmp_path / "mine.jsonl").read_text() == "mine"
    run(Numbers(500), "one")
    assert bytes_or_rows(tmp_path / name) == before  # the same again, and once
    run(Numbers(600), "one")
    assert len(bytes_or_rows(tmp_path / name)) > len(before)


def test_both_tables_of_one_database(tmp_path: Path) -> None:
    both = MultiSink([open_sink(str(tmp_path / "x.db"), table) for table in (POINTS_TABLE, ALARMS_TABLE)])
    both.truncate_to(None)
    offsets = both.flush()
    both.write(results(0))
    both.close()
    again = MultiSink([open_sink(str(tmp_path / "x.db"), table) for table in (POINTS_TABLE, ALARMS_TABLE)])
    again.truncate_to(offsets)
    again.write(results(0))
    assert (len(read_rows(tmp_path / "x.db")), len(read_rows(tmp_path / "x.db", ALARMS_TABLE))) == (N, 1)


def test_offsets_of_other_sinks_raise(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text("mine\n" * 999)
    factories: list[Callable[[], BaseSink]] = [
        lambda: JsonLinesFile(tmp_path / "x.jsonl"),
        lambda: JsonLinesFile(tmp_path / "x.jsonl", POINTS_TABLE),
        lambda: JsonLinesFile(tmp_path / "other.jsonl"),
        lambda: CsvFile(tmp_path / "x.csv"),
        lambda: SqliteSink(tmp_path / "x.db"),
        lambda: StdoutSink(),
        lambda: WebhookSink("http://127.0.0.1:9/x"),
        lambda: CallbackSink(print),
    ]
    for i, make in enumerate(factories):
        sink = make()
        sink.write(BatchResult(Batch(np.zeros((0, 1))), Trace(np.zeros(0), np.zeros(0, np.int8))))
        offset = sink.flush()
        sink.close()
        for j, other in enumerate(factories):
            for wrong_offset in ([offset] if i != j else []) + [17]:
                with pytest.raises(CheckpointError, match=r"^checkpoint: (belongs to the sink|has no offset)"):
                    other().truncate_to(wrong_offset)
    assert (tmp_path / "other.jsonl").read_text() == "mine\n" * 999
    with pytest.raises(CheckpointError, match="checkpoint: belongs to 1 sinks, got 2"):
        MultiSink([factories[0](), factories[1]()]).truncate_to([None])
    with pytest.raises(CheckpointError, match="checkpoint: belongs to 1 sinks, got 2"):
        MultiSink([factories[0](), factories[1]()]).truncate_to({"sink": "x"})


@pytest.mark.parametrize("name", ["x.csv", "x.db"])
def test_other_columns_raise(tmp_path: Path, name: str) -> None:
    write_results(tmp_path / name, POINTS_TABLE, results(0))
    before = (tmp_path / name).read_bytes()
    with pytest.raises(InvalidInputError, match=r"must have the columns .*, a, c, .*, got .*, a, b, "):
        write_results(tmp_path / name, POINTS_TABLE, results(N, ("a", "c")))
    if name == "x.csv":
        assert (tmp_path / name).read_bytes() == before
    write_results(tmp_path / name, POINTS_TABLE, results(N))  # the same ones are added
    rows = read_rows(tmp_path / name) if name == "x.db" else (tmp_path / name).read_text().splitlines()[1:]
    assert len(rows) == 2 * N


def test_unwritable_paths_raise(tmp_path: Path) -> None:
    for name in ("no/x.jsonl", "no/x.csv", "no/x.db"):
        with pytest.raises(InvalidInputError, match=r"cannot be written, its folder .*no does not exist"):
            open_sink(str(tmp_path / name), POINTS_TABLE)
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "d.db").mkdir()
    with pytest.raises(InvalidInputError, match=r"d\.csv: cannot be written: is a directory"):
        CsvFile(tmp_path / "d.csv")
    with pytest.raises(InvalidInputError, match=r"d\.db: cannot be written: unable to open"):
        SqliteSink(tmp_path / "d.db")
    (tmp_path / "no.db").write_text("this is no database, although it is called one" * 99)
    with pytest.raises(InvalidInputError, match="file is not a database"):
        SqliteSink(tmp_path / "no.db")
    with pytest.raises(InvalidInputError, match=r"^table: must be .*, got 'all'"):
        JsonLinesFile(tmp_path / "x.jsonl", "all")


def test_concurrent_readers(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "x.db")
    sink.write(results(0))
    reader = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    reader.execute("begin")
    assert reader.execute("select count(*) from points").fetchone() == (N,)
    for i in range(1, 20):  # a long read does not block writes
        sink.write(results(N * i))
        sink.flush()
    assert reader.execute("select count(*) from points").fetchone() == (N,)
    reader.execute("commit")
    assert reader.execute("select count(*), max(n) from points").fetchone() == (20 * N, 20 * N - 1)
    lines = JsonLinesFile(tmp_path / "x.jsonl")
    lines.write(results(0))
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 1  # at once


def test_failed_batch_writes_nothing(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "x.db", (POINTS_TABLE, ALARMS_TABLE))
    sink.write(results(0))
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute("drop table alarms")
    with pytest.raises(InvalidInputError, match="no such table: alarms"):
        sink.write(results(N))
    assert len(read_rows(tmp_path / "x.db")) == N
    assert sink.flush()["rows"] == {POINTS_TABLE: N, ALARMS_TABLE: 1}


FULL_DISK_SCRIPT = """
import resource, signal, sys
import numpy as np
import limpet as lp
from limpet.exceptions import LimpetError
from limpet.streams import BaseSource, Batch, open_sink

class Numbers(BaseSource):
    def read(self, position):
        values = np.random.default_rng(0).normal(size=8000)
        for first in range(position or 0, 8000, 200):
            yield Batch(values[first : first + 200], position=first + 200)

def run(name):
    sink, folder = open_sink(name, "points"), name + ".checkpoints"
    return lp.run(Numbers(), lp.SRA(rho=0.01, gamma=4.0), sink, folder, checkpoint_interval=0.0)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for name in sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        run(name)
    except LimpetError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(run(name).stats.points)
    lp.run(Numbers(), lp.SRA(rho=0.01, gamma=4.0), open_sink("whole_" + name, "points"))
"""


def test_full_disk_and_resume(tmp_path: Path) -> None:
    names = ["x.jsonl", "x.csv", "x.db"]
    completed = subprocess.run(
        [sys.executable, "-c", FULL_DISK_SCRIPT, *names], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert completed.stderr == ""
    lines = completed.stdout.splitlines()
    assert lines[0] == "x.jsonl: cannot be written: file too large."
    assert lines[2] == "x.csv: cannot be written: file too large."
    assert lines[4].startswith("x.db: cannot be written: ")
    assert lines[1::2] == ["8000"] * 3
    for name in names:  # once the disk has space, no row is missing or duplicate
        path, whole = tmp_path / name, tmp_path / f"whole_{name}"
        assert (read_rows(path) == read_rows(whole)) if name == "x.db" else (path.read_bytes() == whole.read_bytes())


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_moved_file_is_replaced_by_a_new_one(suffix: str, tmp_path: Path) -> None:
    path, moved = tmp_path / f"x.{suffix}", tmp_path / f"x.1.{suffix}"
    sink = open_sink(str(path), POINTS_TABLE)
    sink.truncate_to(None)
    sink.acquire()
    sink.flush()
    sink.write(results(0))
    path.rename(moved)
    sink.write(results(N))  # before the sink notices the move
    offset = sink.flush()
    sink.write(results(2 * N))
    sink.close()
    ends = [len(file.read_text(encoding="utf-8").splitlines()) for file in (moved, path)]
    again = open_sink(str(path), POINTS_TABLE)
    again.truncate_to(offset)
    again.write(results(2 * N))
    again.close()
    assert ends == [2 * N + (suffix == "csv"), N + (suffix == "csv")]
    assert len(path.read_text(encoding="utf-8").splitlines()) == ends[1]
