"""Parquet as a source, from any row on, and as a sink that can be killed."""

from __future__ import annotations

import decimal
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from limpet.detection.alarm import Alarm
from limpet.exceptions import CheckpointError, InvalidInputError, MissingExtraError
from limpet.learners.results import Trace
from limpet.streams.batch import Batch
from limpet.streams.formats.json import NO_KEY, NO_TIME_REASON
from limpet.streams.results import ALARM_COLUMNS, BatchResult, to_str_list
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.parquet import ParquetFile, ParquetParts
from limpet.streams.sources.base import BaseSource
from limpet.streams.sources.parquet import ParquetSource

N = 1000


def write_table(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def write_keyed_table(path: Path) -> tuple[Path, dict[str, Any]]:
    """A file with a time, a key, two values and more, in row groups of 130."""
    rng = np.random.default_rng(0)
    columns = {
        "when": pa.array(np.arange(N) * 1_500_000_000).cast(pa.timestamp("ns", "UTC")),
        "sensor": pa.array([f"s{i}" for i in rng.integers(0, 7, N)]),
        "a": pa.array(rng.normal(size=N)),
        "b": pa.array([None if i % 10 == 3 else i for i in range(N)], pa.int32()),
        "ok": pa.array(rng.random(N) < 0.5),
        "note": pa.array(["x"] * N),
    }
    return write_table(path / "keyed.parquet", columns, row_group_size=130), columns


def concatenate(batches: list[Batch]) -> tuple[Any, ...]:
    return (
        np.concatenate([batch.values for batch in batches]),
        np.concatenate([batch.times for batch in batches if batch.times is not None]),
        [key for batch in batches if batch.keys is not None for key in to_str_list(batch.keys)],
    )


def test_schema_and_points_of_a_file(tmp_path: Path) -> None:
    path, columns = write_keyed_table(tmp_path)
    source = ParquetSource(path, ColumnSpec(), batch_rows=64)
    assert isinstance(source, BaseSource)
    schema = source.schema
    assert schema is not None
    assert (schema.time, schema.key, schema.values) == ("when", "sensor", ("a", "b"))
    assert schema.ignored == {"ok": "not numeric", "note": "not numeric"}
    batches = list(source.read(None))
    values, times, keys = concatenate(batches)
    assert max(map(len, batches)) <= 64
    np.testing.assert_array_equal(values[:, 0], columns["a"].to_numpy())
    np.testing.assert_array_equal(values[:, 1], columns["b"].to_numpy(zero_copy_only=False))
    assert times.dtype == "datetime64[ns]"
    np.testing.assert_array_equal(times.astype(np.int64), np.arange(N) * 1_500_000_000)
    assert keys == columns["sensor"].to_pylist()
    assert batches[-1].position["row"] == N
    assert batches[-1].lag == 0
    assert batches[0].names == ("a", "b")


def test_reading_continues_from_any_position(tmp_path: Path) -> None:
    path, _ = write_keyed_table(tmp_path)
    source = ParquetSource(path, ColumnSpec(), batch_rows=64)
    batches = list(source.read(None))
    for i in range(0, len(batches), 3):
        position = json.loads(json.dumps(batches[i].position))
        other = ParquetSource(path, ColumnSpec(columns=("b",)), batch_rows=50)
        other.schema = batches[i].schema
        actual_points = concatenate(list(other.read(position))) if i + 1 < len(batches) else None
        for actual, expected in zip(
            actual_points or (), concatenate(batches[i + 1 :]) if actual_points else (), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)
    for row in (0, 1, 129, 130, 131, 999, 1000):
        position = batches[0].position | {"row": row}
        read = list(source.read(position))
        assert sum(map(len, read)) == N - row
        if read:
            np.testing.assert_array_equal(read[0].values[0], concatenate(batches)[0][row])
    with pytest.raises(InvalidInputError, match="has 1000 rows, got row 1001"):
        list(source.read(batches[0].position | {"row": 1001}))
    table = pq.read_table(path)
    pq.write_table(table.slice(0, N - 1), tmp_path / "shorter.parquet")
    pq.write_table(
        table.set_column(table.schema.names.index("a"), "a", pa.array(np.arange(float(N)))),
        tmp_path / "changed.parquet",
    )
    for name in ("shorter", "changed"):
        with pytest.raises(CheckpointError, match=rf"source: .*{name}\.parquet was replaced"):
            list(ParquetSource(tmp_path / f"{name}.parquet", ColumnSpec(key="none")).read(batches[3].position))
    with pytest.raises(InvalidInputError, match="position: must have 'row'"):
        list(source.read({"done": [], "current": None, "inner": None}))


TYPES = {
    "i8": pa.array([1, None], pa.int8()),
    "u64": pa.array([2**63, 1], pa.uint64()),
    "half": pa.array([1.5, 2.5], pa.float16()),
    "dec": pa.array([decimal.Decimal("1.25"), None]),
    "coded": pa.array([1.5, None]).dictionary_encode(),
}


@pytest.mark.parametrize("name", TYPES)
def test_numbers_of_any_width(tmp_path: Path, name: str) -> None:
    path = write_table(tmp_path / "x.parquet", {name: TYPES[name]})
    [batch] = ParquetSource(path, ColumnSpec()).read(None)
    expected = [np.nan if value is None else float(value) for value in TYPES[name].to_pylist()]
    np.testing.assert_array_equal(batch.values[:, 0], expected)


def test_booleans_are_values_on_request(tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.parquet", {"a": [1.0, 2.0, 3.0], "ok": [True, None, False]})
    assert ParquetSource(path, ColumnSpec()).schema.values == ("a",)
    [batch] = ParquetSource(path, ColumnSpec(columns=("ok",))).read(None)
    np.testing.assert_array_equal(batch.values[:, 0], [1.0, np.nan, 0.0])
    for name, kind in (("t", pa.string()), ("t", pa.list_(pa.float64())), ("t", pa.time64("ns")), ("t", pa.binary())):
        path = write_table(tmp_path / "y.parquet", {"a": [1.0], name: pa.nulls(1, kind)})
        with pytest.raises(InvalidInputError, match=r"columns: 't'|columns: each"):
            ParquetSource(path, ColumnSpec(columns=("a", "t")))


def test_schema_uses_types_if_the_first_rows_are_null(tmp_path: Path) -> None:
    nulls = [None] * 150
    columns = {
        "time": pa.array([*nulls, 17], pa.timestamp("us")),
        "machine": pa.array([*nulls, "m"]),
        "a": pa.array([*nulls, 1.5]),
        "b": pa.nulls(151),
    }
    source = ParquetSource(write_table(tmp_path / "x.parquet", columns), ColumnSpec())
    schema = source.schema
    assert schema is not None
    assert (schema.time, schema.time_kind, schema.key, schema.values) == ("time", "ISO 8601", "machine", ("a",))
    assert schema.ignored == {"b": "empty"}
    [batch] = source.read(None)
    assert (len(batch), batch.n_records, batch.malformed.counts) == (1, 151, {NO_KEY: 150})
    empty = ParquetSource(
        write_table(tmp_path / "y.parquet", {k: v.slice(0, 0) for k, v in columns.items()}), ColumnSpec()
    )
    assert empty.schema == schema
    assert list(empty.read(None)) == []


TIMES = {
    "seconds": (pa.array([0, 1], pa.timestamp("s")), [0, 1_000_000_000]),
    "zone": (pa.array([0, 1], pa.timestamp("us", "Europe/Berlin")), [0, 1000]),
    "date": (pa.array([0, 1], pa.date32()), [0, 86_400_000_000_000]),
    "date64": (pa.array([0, 86_400_000], pa.date64()), [0, 86_400_000_000_000]),
    "strings": (pa.array(["1970-01-01", "1970-01-01T00:00:01Z"]), [0, 1_000_000_000]),
    "numbers": (pa.array([3, 4]), [3.0, 4.0]),
    "other": (pa.array(["Mon", "Tue"]), ["Mon", "Tue"]),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_any_type(tmp_path: Path, name: str) -> None:
    column, expected = TIMES[name]
    path = write_table(tmp_path / "x.parquet", {"time": column, "a": [1.0, 2.0]})
    [batch] = ParquetSource(path, ColumnSpec(time="time")).read(None)
    assert batch.times is not None
    times = batch.times.astype(np.int64) if batch.times.dtype.kind == "M" else batch.times
    assert times.tolist() == expected


KEYS = {
    "strings": (pa.array(["a", None, "", "b", "a"]), ["a", "b", "a"], 2),
    "large": (pa.array(["a", "b"], pa.large_string()), ["a", "b"], 0),
    "coded": (pa.array(["a", None, "b"]).dictionary_encode(), ["a", "b"], 1),
    "numbers": (pa.array([7, None, -1]), ["7", "-1"], 1),
    "floats": (pa.array([7.0, np.nan, 1.5, None, 8]), ["7", "8"], 3),
    "bytes": (
        pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
        ),
        ["a"],
        1,
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_any_type(tmp_path: Path, name: str) -> None:
    column, expected, n_malformed = KEYS[name]
    path = write_table(tmp_path / "x.parquet", {"k": column, "a": np.arange(len(column))})
    [batch] = ParquetSource(path, ColumnSpec(key="k")).read(None)
    assert batch.keys is not None
    assert to_str_list(batch.keys) == expected
    assert batch.malformed.counts == ({NO_KEY: n_malformed} if n_malformed else {})
    assert batch.n_records == len(column)


def test_rows_without_key_or_time_are_malformed(tmp_path: Path) -> None:
    far = 2**62  # a number of microseconds that nanoseconds cannot count
    columns = {
        "time": pa.array([0, None, 2, far, 4, None], pa.timestamp("us")),
        "key": pa.array(["a", "a", None, "b", "b", None]),
        "a": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    }
    [batch] = ParquetSource(write_table(tmp_path / "x.parquet", columns), ColumnSpec()).read(None)
    assert batch.malformed.counts == {NO_KEY: 2, NO_TIME_REASON: 2}
    assert [reject.index for reject in batch.malformed.first] == [1, 2, 3, 5]
    assert (
        str(batch.malformed.first[1])
        == f"record 2: {NO_KEY}: {{'a': 2.0, 'time': '1970-01-01T00:00:00.000002', 'key': None}}"
    )
    assert batch.record_index is not None
    assert batch.record_index.tolist() == [0, 4]
    assert batch.values[:, 0].tolist() == [0.0, 4.0]


def test_unreadable_files_raise(tmp_path: Path) -> None:
    path, _ = write_keyed_table(tmp_path)
    with pytest.raises(InvalidInputError, match="'x' not found"):
        ParquetSource(path, ColumnSpec(columns=("x",)))
    with pytest.raises(InvalidInputError, match=r"missing\.parquet cannot be read: No such file"):
        ParquetSource(tmp_path / "missing.parquet", ColumnSpec())
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n" * 10)
    with pytest.raises(InvalidInputError, match=r"text\.parquet cannot be read: Parquet magic bytes not found"):
        ParquetSource(tmp_path / "text.parquet", ColumnSpec())
    whole = path.read_bytes()
    (tmp_path / "hole.parquet").write_bytes(whole[:9000] + b"\xff" * 4000 + whole[13000:])
    with pytest.raises(InvalidInputError, match=r"hole\.parquet cannot be read after row"):
        list(ParquetSource(tmp_path / "hole.parquet", ColumnSpec()).read(None))
    with pytest.raises(InvalidInputError, match="key: "):
        ParquetSource(path, ColumnSpec(key="ok"))


def test_missing_pyarrow_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for make in (lambda: ParquetSource(tmp_path), lambda: ParquetParts(tmp_path, "points")):
        with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[files\]'"):
            make()


def results(first: int, n: int = 10, kind: str = "times") -> BatchResult:
    """n points of two streams; each tenth raises an alarm, whose size and p-value are not known."""
    rng = np.random.default_rng(first)
    rows = [i for i in range(first, first + n) if i % 10 == 4]
    alarms = [Alarm("change", i, i - 2, np.nan, "up", ("a", "b"), None, "k1") for i in rows]
    times = {
        "times": (1_000_000_000 * np.arange(first, first + n)).view("datetime64[ns]"),
        "numbers": np.arange(first, first + n) * 1.5,
        "strings": np.array([f"no {i}" for i in range(first, first + n)], object),
        "none": None,
    }[kind]
    trace = Trace(
        rng.normal(size=n),
        rng.integers(0, 3, n).astype(np.int8),
        auto_scores=(np.full(n, np.nan), rng.random(n)),
        alarms=alarms,
        explicit_alarm_index=[i - first for i in rows],
    )
    keys = [f"k{i % 2}" for i in range(n)]
    return BatchResult(
        Batch(rng.normal(size=(n, 2)), first + n, ("a", "b"), keys, times), trace, first, first, first // 10
    )


@pytest.mark.parametrize("kind", ["times", "numbers", "strings", "none"])
def test_one_file_per_table(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "points.parquet"
    sinks = [ParquetFile(path, "points"), ParquetFile(tmp_path / "alarms.parquet", "alarms")]
    batches = [results(first, 10, kind) for first in range(0, 50, 10)]
    for sink in sinks:
        sink.truncate_to(None)
        sink.write(results(0, 0, "none"))  # an empty batch
        for result in batches:
            sink.write(result)
        assert not path.exists() or sink is sinks[1]
        sink.drain()
        sink.close()
        sink.close()
    points = pq.read_table(path)
    time = {"times": pa.timestamp("ns"), "numbers": pa.float64(), "strings": pa.string()}.get(kind)
    expected = {"record": pa.int64()} | ({"time": time} if time else {}) | {"key": pa.string()}
    expected |= dict.fromkeys(("a", "b", "score", "p_value", "change_score"), pa.float64())
    expected |= dict.fromkeys(("rejected", "anomaly", "change", "invalid"), pa.bool_())
    assert points.schema.equals(pa.schema(expected))
    for name in points.schema.names:
        expected_values = [x for result in batches for x in result.point_columns()[name]]
        if name == "time":
            expected_values = [x for result in batches for x in result.batch.times]
            expected_values = np.array(expected_values).tolist()
            got = points[name].cast(pa.int64()).to_pylist() if kind == "times" else points[name].to_pylist()
            assert got == expected_values
        else:
            np.testing.assert_array_equal(np.array(points[name].to_pylist()), np.array(expected_values))
    alarms = pq.read_table(tmp_path / "alarms.parquet")
    assert tuple(alarms.schema.names) == ALARM_COLUMNS
    assert alarms.schema.field("time").type == (time or pa.timestamp("ns"))
    rows = [row for result in batches for row in result.alarm_records()]
    for row, got in zip(rows, alarms.drop_columns(["time"]).to_pylist(), strict=True):
        assert {name: value for name, value in row.items() if name != "time"} == got
    assert polars.read_parquet(path).height == 50
    assert polars.read_parquet(tmp_path / "alarms.parquet")["variables"].to_list() == [["a", "b"]] * 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alarms.parquet", "points.parquet"]


def test_one_file_without_rows_and_not_resumed(tmp_path: Path) -> None:
    sink = ParquetFile(tmp_path / "x.parquet", "alarms")
    sink.drain()
    sink.close()
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0
    sink = ParquetFile(tmp_path / "x.parquet", "alarms")
    sink.truncate_to(sink.flush())
    sink.write(results(0))
    with pytest.raises(InvalidInputError, match="cannot be resumed"):
        ParquetFile(tmp_path / "x.parquet", "alarms").truncate_to(sink.flush())
    with pytest.raises(InvalidInputError, match=r"table: must be .*, got 'all'"):
        ParquetFile(tmp_path / "x.parquet", "all")
    with pytest.raises(InvalidInputError, match="must be a file in an existing folder"):
        ParquetFile(tmp_path / "none" / "x.parquet", "points")


def test_interrupted_run_leaves_no_file(tmp_path: Path) -> None:
    class Broken(BaseSource):
        def read(self, position: Any) -> Any:
            yield Batch(np.random.default_rng(0).normal(size=1000), position=1000)
            raise InvalidInputError("the cable is cut")

    for make in (
        lambda: ParquetFile(tmp_path / "x.parquet", "points"),
        lambda: ParquetFile(tmp_path / "y.pq", "alarms"),
    ):
        with pytest.raises(InvalidInputError, match="the cable is cut"):
            lp.run(Broken(), lp.SRA(rho=0.01, gamma=4.0), make())
    assert list(tmp_path.iterdir()) == []


def records(folder: Path) -> list[int]:
    rows: list[int] = pq.read_table(folder)["record"].to_pylist()
    assert polars.read_parquet(folder)["record"].to_list() == rows
    return rows


def test_parts_are_truncated_to_an_offset(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = ParquetParts(folder, "points")
    sink.truncate_to(None)
    sink.acquire()
    offsets = [sink.flush()]
    for first in range(0, 40, 10):
        sink.write(results(first))
        offsets.append(sink.flush())
        assert sink.flush() == offsets[-1]  # nothing to write, no part
    assert [mark["parts"] for mark in offsets] == [0, 1, 2, 3, 4]
    sink.write(results(40))  # begun, and not flushed
    assert records(folder) == list(range(40))
    with pytest.raises(InvalidInputError, match="in use by another run"):
        ParquetParts(folder, "points").truncate_to(offsets[2])
    sink.close()
    again = ParquetParts(folder, "points")
    again.truncate_to(offsets[2])
    assert records(folder) == list(range(20))
    assert sorted(path.name for path in folder.iterdir()) == ["part-000000.parquet", "part-000001.parquet"]
    again.write(results(20))
    again.write(results(30))
    assert again.flush()["parts"] == 3
    again.close()
    with pytest.raises(InvalidInputError, match="out: must not belong to another checkpoint folder"):
        ParquetParts(folder, "points").truncate_to(None)
    (tmp_path / ".out.limpet").unlink()
    new = ParquetParts(folder, "points")
    new.truncate_to(None)  # a new run appends
    new.write(results(0, 0))
    new.write(results(40))
    new.close()
    assert records(folder) == list(range(50))
    assert pq.read_table(folder / "part-000003.parquet").num_rows == 10
    with pytest.raises(CheckpointError, match="another run has written to it"):
        ParquetParts(folder, "points").truncate_to(offsets[0])
    assert records(folder) == list(range(50))
    with pytest.raises(CheckpointError, match=r"sink points in .*out/, got alarms in .*out/"):
        ParquetParts(folder, "alarms").truncate_to(offsets[0])


def test_parts_keep_their_columns(tmp_path: Path) -> None:
    sink = ParquetParts(tmp_path, "alarms")
    for first in range(0, 30, 5):  # every other batch has no alarm
        sink.write(results(first, 5))
        sink.flush()
    schemas = [pq.read_schema(path) for path in sorted(tmp_path.iterdir())]
    assert len(schemas) == 3
    assert all(schema.equals(schemas[0]) for schema in schemas)
    sink.close()
    other = ParquetParts(tmp_path, "points")
    with pytest.raises(InvalidInputError, match=r"must have the columns of its parts, record .* Give another folder"):
        other.write(results(0))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="cannot be a folder of parts"):
        ParquetParts(tmp_path / "file", "points")


KILLED_SCRIPT = """
import json, os, sys
from streams.test_parquet import results
from limpet.streams.sinks.parquet import ParquetParts
sink, stop = ParquetParts(sys.argv[1], "points"), int(sys.argv[2])
real, done = os.fsync, []
def fsync(handle):
    real(handle)
    done.append(handle)
    if len(done) == stop:
        os.kill(os.getpid(), 9)
sink.truncate_to(None)
sink.acquire()
print(json.dumps([0, sink.flush()]), flush=True)
os.fsync = fsync
for first in range(0, 100, 10):
    sink.write(results(first))
    print(json.dumps([first + 10, sink.flush()]), flush=True)
"""


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_process_killed_between_parts_resumes(tmp_path: Path, stop: int) -> None:
    """After the file was synced and before it had its name; after it had; and later."""
    completed = subprocess.run(
        [sys.executable, "-c", KILLED_SCRIPT, str(tmp_path), str(stop)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert completed.returncode == -signal.SIGKILL, completed.stderr
    checkpoints = [json.loads(line) for line in completed.stdout.splitlines()]
    row, offset = checkpoints[-1]
    assert len(checkpoints) == 1 + (stop - 1) // 2
    sink = ParquetParts(tmp_path, "points")
    sink.truncate_to(offset)
    for first in range(row, 50, 10):
        sink.write(results(first))
        sink.flush()
    assert records(tmp_path) == list(range(50))
    assert len(list(tmp_path.iterdir())) == 5
