"""For tests on Spark: streams, folders that they are fed from, and whether two sets of answers are the same."""

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
from limpet import spark as hs
from limpet.learners.serialization import pack, unpack
from limpet.spark.job_spec import JobSpec

PLAIN = lp.SRA(gamma=4.0, rho=0.01)


def stream_of(n_keys: int, n: int, seed: int, texts: bool = True) -> pa.Table:
    """Points of many streams, their times all different; with glitches, shifts, gaps, and a column beside."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(n_keys, size=n)
    values = rng.normal(keys[:, None], 1.0, (n, 2))
    values[rng.random(n) < 0.01] += 30.0
    values[(np.arange(n) > 0.7 * n) & (keys % 3 == 0)] += 6.0
    values[rng.random((n, 2)) < 0.01] = np.nan
    micros = np.datetime64("2026-03-01", "us") + (np.arange(n) * 1_000_003).astype("timedelta64[us]")
    table = pa.table(
        {
            "sensor": pa.array([f"s{key:03}" for key in keys]) if texts else pa.array(keys),
            "ts": pa.array(micros).cast(pa.timestamp("us", "UTC")),
            "a": pa.array(values[:, 0], from_pandas=True),
            "b": values[:, 1],
            "note": pa.array([None if i % 7 else i for i in range(n)], pa.int64()),
        }
    )
    return table


def plan_of(model: Any = PLAIN, **more: Any) -> JobSpec:
    """What is to be done with such a stream."""
    told = model._config(None, None)
    usual = {"key": "sensor", "texts": True, "values": ("a", "b"), "time": "ts", "unit": "us", "buckets": 4}
    return JobSpec({"learner": told["learner"], "settings": told["settings"]}, **usual | more)


def feed(folder: Path, table: pa.Table, pieces: int, files: int = 1) -> pa.Table:
    """Writes a table to a folder: each piece a micro-batch of so many files, its rows in no order.

    Returns its rows in the order of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    edges, order = np.linspace(0, len(table), pieces + 1).astype(int), []
    for piece, (begin, end) in enumerate(pairwise(edges.tolist())):
        shuffled = rng.permutation(np.arange(begin, end))
        for nth, part in enumerate(np.array_split(shuffled, files)):
            file = folder / f"{piece:03}-{nth:02}.parquet"
            pq.write_table(table.take(pa.array(part)), file)
            os.utime(file, (1e9, 1e9 + 100 * piece + nth))  # Spark takes the oldest first
        order.append(shuffled)
    return table.take(pa.array(np.concatenate(order)))


def source(spark: Any, folder: Path, files: int = 1) -> Any:
    """A streaming DataFrame of a folder, so many files a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def streamed(spark: Any, place: Path, *columns: Any, files: int = 1, **settings: Any) -> pa.Table:
    """What a stream in `place/in` comes to, all that is there: written to `place/out`, checkpoint in `place`."""
    checkpoint = str(place / "checkpoint")
    scored = hs.score(source(spark, place / "in", files), *columns, checkpoint=checkpoint, **settings)
    run(scored, place)
    return pq.read_table(place / "out")


def run(scored: Any, place: Path) -> None:
    """Runs a query until there is no more to read."""
    writer = scored.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.outputMode("append").trigger(availableNow=True).start(str(place / "out"))
    query.awaitTermination()


def same_answers(got: pa.Table, expected: pa.Table, by: str = "ts") -> None:
    """The columns of the expected table are in the other one, with the same bits."""
    assert len(got) == len(expected) > 0
    got, expected = got.sort_by(by), expected.sort_by(by)
    for name in expected.column_names:
        ours, theirs = got[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(theirs.type):
            bits = [np.asarray(one.fill_null(np.inf).to_numpy()).view(np.int64) for one in (ours, theirs)]
            assert np.array_equal(*bits), name
        else:
            assert ours.cast(theirs.type).equals(theirs), name


def same_alarms(got: pa.Table, table: pa.Table, model: Any, time: str, by: str = "ts") -> None:
    """Each alarm of a fleet stands in the row that raised it, whole, and there are no others.

    table: the rows, those of equal times in the order in which they come. by: a column that tells rows apart.
    """
    rows = table.sort_by(time)
    points = np.column_stack([rows[name].fill_null(np.nan).to_numpy() for name in ("a", "b")])
    names, keys = rows[by].to_pylist(), rows["sensor"].to_pylist()
    trace = lp.Fleet(model).update(keys, [{"a": a, "b": b} for a, b in points])
    expected: dict[Any, list[Any]] = {}
    for place, alarm in zip(trace.alarm_index, trace.alarms, strict=True):
        assert alarm.key == keys[place]
        told = {name: getattr(alarm, name) for name in ("kind", "row", "onset", "size", "direction")}
        told |= {"variables": list(alarm.variables), "p_value": alarm.p_value, "message": str(alarm)}
        expected.setdefault(names[place], []).append(told)
    assert {alarm.kind for alarm in trace.alarms} == {"anomaly", "change"}
    raised = got.filter(got["alarms"].is_valid())
    found = dict(zip(raised[by].cast(table[by].type).to_pylist(), raised["alarms"].to_pylist(), strict=True))
    assert repr(sorted(found.items())) == repr(sorted(expected.items()))  # by their text: NaN is not equal to itself


class Naive:
    """A learner for each stretch of each stream, one point after another: what a bucket has to come to."""

    def __init__(self, model: Any, idle: int | None = None) -> None:
        self.model, self.idle = model, idle
        self.learners: dict[Any, Any] = {}
        self.last: dict[Any, int] = {}

    def learn(self, rows: list[tuple[Any, int | None, Any]], watermark: int) -> list[tuple[float, bool, bool, bool]]:
        """rows: (key, time, values), in the order in which they come → (score, dropped, bad, late) of each."""
        told = [(math.nan, False, True, False)] * len(rows)
        for i in sorted((i for i, row in enumerate(rows) if row[1] is not None), key=lambda i: rows[i][1]):
            key, time, values = rows[i]
            last = self.last.get(key)
            if key is not None and (time < watermark or (last is not None and time < last)):
                told[i] = (math.nan, False, False, True)
            elif key is not None:
                if last is not None and self.idle is not None and time - last > self.idle:
                    del self.learners[key]
                self.last[key] = time
                learner = self.learners.setdefault(key, self.model.clone())
                trace = learner.process(np.array([values], float))
                told[i] = (trace.score[0], bool(trace.rejected[0]), bool(trace.invalid[0]), False)
        return told

    def retune(self, model: Any) -> None:
        """All go on from their states, with other settings."""
        self.model = model
        for key, learner in self.learners.items():
            header, state = unpack(learner.to_bytes())
            settings = model._config(None, None)["settings"]
            self.learners[key] = lp.from_bytes(pack(header | {"settings": settings}, state))


def same_streams(got: lp.Fleet, expected: lp.Fleet) -> None:
    """Both have the same streams, with the same bits."""
    assert sorted(got.keys()) == sorted(expected.keys())
    for key in expected:
        assert np.array_equal(np.array(got[key].state).view(np.int64), np.array(expected[key].state).view(np.int64)), (
            key
        )
