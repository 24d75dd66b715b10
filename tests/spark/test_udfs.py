"""Buckets of keys, packed rows, and the columns of Arrow, without a session of Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from helpers.spark import make_spec
from limpet.spark import udfs
from limpet.spark.arrow import read_key_column, read_time_column, read_value_columns
from limpet.spark.partitioner import partition_of, partition_of_list
from limpet.spark.udfs import concat_tables, from_ipc_bytes, pack_batches, to_ipc_chunks, unpack_batches

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

# Buckets of keys


def test_bucket_of_a_key_is_fixed() -> None:
    """Checkpoints are laid out by it: a change of these figures needs a new version of the hash."""
    keys = ["", "a", "pump 3", "é", "日本", "🦀", "\0", "x" * 1000]
    assert partition_of(pa.array(keys), 1 << 20).tolist() == [
        387227,
        270584,
        673064,
        414,
        667398,
        651682,
        19232,
        821866,
    ]
    assert partition_of(pa.array([0, 1, -1, 2**62, -(2**63)]), 1 << 20).tolist() == [0, 722405, 769403, 480453, 960906]


def test_bucket_of_a_key_does_not_depend_on_the_arrow_type() -> None:
    keys = pa.array(["x", "oil", None, "water", "", "y"])
    expected = partition_of(pa.array(["oil", "water"]), 64).tolist()
    for array in (keys, keys.cast(pa.large_string()), pa.chunked_array([keys.slice(0, 2), keys.slice(2)])):
        got = partition_of(array.slice(1, 4), 64)
        assert [got[0], got[2]] == expected
        assert (got < 64).all()
    assert partition_of_list(["oil", "water"], 64).tolist() == expected
    for kind in (pa.int8(), pa.int16(), pa.int32()):
        assert partition_of(pa.array([7, -8], kind), 99).tolist() == partition_of_list([7, -8], 99).tolist()
    assert len(partition_of(pa.array([], pa.string()), 8)) == len(partition_of(pa.array([], pa.int64()), 8)) == 0
    missing = partition_of(pa.nulls(1000, pa.string()), 8)
    assert (np.bincount(missing, minlength=8) == 125).all()  # rows without a key are distributed over all buckets
    assert (np.bincount(partition_of(pa.array(range(8000)), 8)) > 800).all()


# Packed rows

ANY_COLUMNS = {
    "sensor": ["a", "b", "", None, "a", "a"],
    "ts": pa.array([5, 1, None, 2, 7, 7], pa.timestamp("us", "America/New_York")),
    "big": [2**53 + 1, None, -(2**63), 2**63 - 1, 0, 1],
    "decimal": [Decimal("1.10"), None, Decimal("-99999.99"), Decimal(0), Decimal(1), Decimal(2)],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1), dt.date(2000, 2, 29), None],
    "ntz": pa.array([-1, 0, None, 1, 2, 3], pa.timestamp("us")),
    "binary": [b"", b"\0\xff", None, b"x", b"y", b"z"],
    "list": [[], None, [1, None], [2], [3], [4]],
    "struct": pa.array([{"x": 1, "y": "u"}, None, {"x": None, "y": ""}, None, None, None]),
    "map": pa.array([[("k", 1)], [], None, [("k", None)], None, None], pa.map_(pa.string(), pa.int64())),
    "deep": [[[1], None, []], None, [], [[2]], None, None],
    "nothing": pa.nulls(6),
    "coded": pa.array(["u", None, "v", "u", "u", "v"]).dictionary_encode(),
    "flag": [True, None, False, True, False, None],
    "a": [1.0, None, float("nan"), float("inf"), -0.0, 5e-324],
    "b": pa.array([1, 2, 3, 4, None, 6], pa.int8()),
}


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 26])
def test_packed_rows_keep_their_types_and_values(monkeypatch, chunk_bytes) -> None:
    monkeypatch.setattr(udfs, "ARROW_CHUNK_BYTES", chunk_bytes)
    table = pa.table(ANY_COLUMNS).append_column("i", pa.array(range(6)))
    spec = make_spec(watermark="1 second")
    values = list(pack_batches(table.to_batches(max_chunksize=2), spec, task=3))
    assert len(values) == (3 if chunk_bytes == 1 else 1)
    for batch in values:
        for row in batch.to_pylist():
            rows = from_ipc_bytes(row["rows"])
            assert set(partition_of(rows["sensor"].drop_null(), 4).tolist()) <= {row["bucket"]}
            assert row["sequence"] >> 32 == 3
            times = [t for t in rows["ts"].to_pylist() if t is not None]
            assert row["latest"] == max(times, default=None)
    for unpacked in (
        concat_tables([v for batch in values for v in batch["rows"].to_pylist()]),
        to_table(unpack_batches(values)),
    ):
        assert unpacked.schema.equals(table.schema)
        unpacked = unpacked.take(pa.array(np.argsort(unpacked["i"].to_numpy())))
        assert unpacked.drop_columns("a").equals(table.drop_columns("a"))
        assert unpacked["a"].to_pylist()[0:2] == [1.0, None]
        assert np.array_equal(
            read_value_columns(unpacked, ["a"]).view(np.int64), read_value_columns(table, ["a"]).view(np.int64)
        )
    assert list(pack_batches(iter([]), spec, 0)) == list(pack_batches(table.slice(0, 0).to_batches(), spec, 0)) == []


def to_table(batches) -> pa.Table:
    return pa.Table.from_batches(list(batches))


def test_large_results_are_split_into_chunks(monkeypatch) -> None:
    monkeypatch.setattr(udfs, "ARROW_CHUNK_BYTES", 10_000)
    table = pa.table({"x": ["y" * 3000] * 10, "i": range(10)})
    values = list(to_ipc_chunks(table))
    assert [len(from_ipc_bytes(value)) for value in values] == [3, 3, 3, 1]
    assert concat_tables(values).equals(table)
    assert list(to_ipc_chunks(table.slice(0, 0))) == []


def test_latest_time_is_clipped_to_the_range_of_pandas() -> None:
    """Spark converts it with pandas, whose nanoseconds end in 2262."""
    days = pa.table(
        {"sensor": ["a", "b"], "ts": [dt.date(9999, 12, 31), dt.date(1, 1, 1)], "a": [1.0, 1.0], "b": [1, 1]}
    )
    (batch,) = pack_batches(days.to_batches(), make_spec(watermark="1 second"), 0)
    latest = batch["latest"].to_pandas()
    assert sorted(latest.dt.year) == [1677, 2262]


def test_keys_values_and_times_of_arrow_columns() -> None:
    strings = pa.array([b"\xff", b"ok", None, b"\xc3\xa9", b""]).cast(pa.string(), safe=False)
    keys = read_key_column(pa.chunked_array([strings]))
    assert [None if code < 0 else keys.values[code] for code in keys.codes] == [None, "ok", None, "é", ""]
    columns = {
        "d": [Decimal("0.1"), None],
        "t": [True, False],
        "i": [2**53 + 1, None],
        "f": pa.array([0.5, None], pa.float32()),
    }
    assert np.array_equal(
        read_value_columns(pa.table(columns), list(columns)),
        [[0.1, 1.0, 2.0**53, 0.5], [np.nan, 0.0, np.nan, np.nan]],
        equal_nan=True,
    )
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    never = np.iinfo(np.int64).min
    for kind, micros in ((pa.timestamp("us", "America/New_York"), -1_000_000), (pa.timestamp("us", "UTC"), -1_000_000)):
        assert read_time_column(pa.chunked_array([pa.array([moment, None], kind)])).tolist() == [micros, never]
    assert read_time_column(pa.array([dt.date(1969, 12, 31), None])).tolist() == [-86_400_000_000, never]
    assert read_time_column(pa.array([7, None], pa.int16())).tolist() == [7, never]
