"""Helpers for tests on Spark: tables, folders of files for streams, and comparisons of results."""

from __future__ import annotations

import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import limpet as lp
from limpet import spark as ls
from limpet.learners.serialization import pack, unpack
from limpet.spark.arrow import ALARM_STRUCT_FIELDS
from limpet.spark.job_spec import JobSpec, get_config

SRA_LEARNER = lp.SRA(gamma=4.0, rho=0.01)


def make_table(n_keys: int, n: int, seed: int, string_keys: bool = True) -> pa.Table:
    """Return points of many streams at different times, with outliers, shifts, missing values, and another column."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(n_keys, size=n)
    values = rng.normal(keys[:, None], 1.0, (n, 2))
    values[rng.random(n) < 0.01] += 30.0
    values[(np.arange(n) > 0.7 * n) & (keys % 3 == 0)] += 6.0
    values[rng.random((n, 2)) < 0.01] = np.nan
    micros = np.datetime64("2026-03-01", "us") + (np.arange(n) * 1_000_003).astype("timedelta64[us]")
    table = pa.table(
        {
            "sensor": pa.array([f"s{key:03}" for key in keys]) if string_keys else pa.array(keys),
            "ts": pa.array(micros).cast(pa.timestamp("us", "UTC")),
            "a": pa.array(values[:, 0], from_pandas=True),
            "b": values[:, 1],
            "note": pa.array([None if i % 7 else i for i in range(n)], pa.int64()),
        }
    )
    return table


def make_spec(learner: Any = SRA_LEARNER, **changes: Any) -> JobSpec:
    """Return the specification of a job on such a table."""
    defaults = {
        "key": "sensor",
        "has_string_keys": True,
        "values": ("a", "b"),
        "time": "ts",
        "time_unit": "us",
        "buckets": 4,
    }
    return JobSpec(get_config(learner), **defaults | changes)


def write_files(folder: Path, table: pa.Table, batches: int, files: int = 1) -> pa.Table:
    """Write a table to a folder, as so many files per micro-batch; the rows of a micro-batch are shuffled.

    Returns the rows in the order of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    edges, order = np.linspace(0, len(table), batches + 1).astype(int), []
    for batch, (begin, end) in enumerate(pairwise(edges.tolist())):
        shuffled = rng.permutation(np.arange(begin, end))
        for nth, part in enumerate(np.array_split(shuffled, files)):
            file = folder / f"{batch:03}-{nth:02}.parquet"
            pq.write_table(table.take(pa.array(part)), file)
            os.utime(file, (1e9, 1e9 + 100 * batch + nth))  # Spark reads the oldest first
        order.append(shuffled)
    return table.take(pa.array(np.concatenate(order)))


def read_stream(spark: Any, folder: Path, files: int = 1) -> Any:
    """Return a streaming DataFrame of a folder with so many files per micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def score_stream(spark: Any, folder: Path, *columns: Any, files: int = 1, **parameters: Any) -> pa.Table:
    """Score the files of `folder/in` as a stream to `folder/out`, with a checkpoint in `folder/checkpoint`."""
    checkpoint = str(folder / "checkpoint")
    scored = ls.score(read_stream(spark, folder / "in", files), *columns, checkpoint=checkpoint, **parameters)
    run_query(scored, folder)
    return pq.read_table(folder / "out")


def run_query(scored: Any, folder: Path) -> None:
    """Run a query to the end of its source."""
    writer = scored.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.outputMode("append").trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()


def assert_same_results(got: pa.Table, expected: pa.Table, by: Any = "ts") -> None:
    """Check that a table has the columns of the expected one, with the same bits."""
    assert len(got) == len(expected) > 0
    got, expected = got.sort_by(by), expected.sort_by(by)
    for name in expected.column_names:
        ours, theirs = got[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(theirs.type):
            bits = [np.asarray(column.fill_null(np.inf).to_numpy()).view(np.int64) for column in (ours, theirs)]
            assert np.array_equal(*bits), name
        else:
            assert ours.cast(theirs.type).equals(theirs), name


def assert_same_alarms(got: pa.Table, table: pa.Table, learner: Any, time: str, by: str = "ts") -> None:
    """Check that each alarm of a fleet is in the row that raised it, complete, and that no others exist.

    table: the rows, those of equal times in input order. by: a column that identifies rows.
    """
    rows = table.sort_by(time)
    points = np.column_stack([rows[name].fill_null(np.nan).to_numpy() for name in ("a", "b")])
    names, keys = rows[by].to_pylist(), rows["sensor"].to_pylist()
    trace = lp.Fleet(learner).update(keys, [{"a": a, "b": b} for a, b in points])
    expected: dict[Any, list[Any]] = {}
    for index, alarm in zip(trace.alarm_index, trace.alarms, strict=True):
        record = alarm.to_dict()
        assert record["key"] == keys[index]
        expected.setdefault(names[index], []).append({name: record[name] for name in ALARM_STRUCT_FIELDS})
    assert {alarm.kind for alarm in trace.alarms} == {"anomaly", "change"}
    raised = got.filter(got["alarms"].is_valid())
    assert dict(zip(raised[by].cast(table[by].type).to_pylist(), raised["alarms"].to_pylist(), strict=True)) == expected


class ReferencePartition:
    """Reference of a bucket: a learner per stream and idle period, updated point by point."""

    fields = ("score", "rejected", "invalid", "late", "duplicate")

    def __init__(self, learner: Any, idle_timeout: int | None = None) -> None:
        self.learner, self.idle_timeout = learner, idle_timeout
        self.learners: dict[Any, Any] = {}
        self.last_rows: dict[Any, tuple[int, Any]] = {}

    def learn(
        self, rows: list[tuple[Any, int | None, Any]], watermark: int
    ) -> list[tuple[float, bool, bool, bool, bool]]:
        """Process rows (key, time, values) in input order; return the fields of each."""
        results = [(math.nan, False, True, False, False)] * len(rows)
        for i in sorted((i for i, row in enumerate(rows) if row[1] is not None), key=lambda i: rows[i][1]):
            key, time, values = rows[i]
            if key is None:
                continue
            last, last_values = self.last_rows.get(key, (None, None))
            if time < watermark or (last is not None and time < last):
                results[i] = (math.nan, False, False, True, False)
            elif time == last and np.array_equal(np.array(values, float), last_values, equal_nan=True):
                results[i] = (math.nan, False, False, False, True)
            else:
                if last is not None and self.idle_timeout is not None and time - last > self.idle_timeout:
                    del self.learners[key]
                self.last_rows[key] = time, np.array(values, float)
                learner = self.learners.setdefault(key, self.learner.clone())
                trace = learner.process(np.array([values], float))
                results[i] = (trace.score[0], bool(trace.rejected[0]), bool(trace.invalid[0]), False, False)
        return results

    def change_params(self, learner: Any) -> None:
        """Continue all learners from their states with other parameters."""
        self.learner = learner
        for key, old in self.learners.items():
            header, state = unpack(old.to_bytes())
            self.learners[key] = lp.from_bytes(pack(header | {"settings": get_config(learner)["settings"]}, state))


def assert_same_streams(got: lp.Fleet, expected: lp.Fleet) -> None:
    """Check that two fleets have the same streams, with the same bits."""
    assert sorted(got.keys()) == sorted(expected.keys())
    for key in expected:
        bits = [np.array(fleet[key].state).view(np.int64) for fleet in (got, expected)]
        assert np.array_equal(*bits), key
