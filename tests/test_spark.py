"""Spark gives the answers of a fleet, to the last bit: batch and streaming, however all is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.engines import spark as hs
from holdfast.errors import CheckpointError
from sparks import feed, same_answers, same_streams, source, stream_of, streamed

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")]

PLAIN, WATCHED = hf.SRA(gamma=4.0, rho=0.01), hf.SRA(memory="lean")


@pytest.mark.parametrize("model", [PLAIN, WATCHED], ids=["plain", "autopilot"])
@pytest.mark.parametrize(("buckets", "pieces", "partitions"), [(1, 1, 1), (5, 4, 3), (64, 7, 2)])
def test_streaming_is_the_fleet(spark, tmp_path, model, buckets, pieces, partitions) -> None:
    table = stream_of(n_keys=40, n=4000, seed=buckets)
    fleet = hf.Fleet(model)
    expected = fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    feed(tmp_path / "in", table, pieces, partitions)
    out = streamed(spark, tmp_path, "sensor", ["a", "b"], "ts", model, buckets=buckets, files=partitions)
    same_answers(out, expected)
    same_streams(hs.export(spark, tmp_path / "checkpoint"), fleet)


@pytest.mark.parametrize("model", [PLAIN, WATCHED], ids=["plain", "autopilot"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_batch_is_the_fleet(spark, tmp_path, model, partitions) -> None:
    table = stream_of(n_keys=40, n=4000, seed=partitions)
    expected = hf.Fleet(model).process(table, key="sensor", values=["a", "b"], time="ts")
    feed(tmp_path / "in", table, 1, partitions)
    frame = spark.read.parquet(str(tmp_path / "in")).repartition(partitions)
    hs.score(frame, "sensor", ["a", "b"], "ts", model).write.parquet(str(tmp_path / "out"))
    same_answers(pq.read_table(tmp_path / "out"), expected)


def test_history_then_the_stream(spark, tmp_path) -> None:
    table = stream_of(n_keys=30, n=3000, seed=9, texts=False)
    fleet = hf.Fleet(PLAIN)
    fleet.process(table[:2000], key="sensor", values=["a", "b"], time="ts")
    expected = fleet.process(table[2000:], key="sensor", values=["a", "b"], time="ts")
    feed(tmp_path / "before", table[:2000], 1, 3)
    feed(tmp_path / "in", table[2000:], 2)
    history = hs.learn(spark.read.parquet(str(tmp_path / "before")), "sensor", ["a", "b"], "ts", PLAIN)
    same_answers(streamed(spark, tmp_path, "sensor", ["a", "b"], "ts", PLAIN, buckets=8, initial=history), expected)
    same_streams(hs.export(spark, tmp_path / "checkpoint"), fleet)


def test_a_model_of_ones_own(spark, tmp_path) -> None:
    from exponential import Exponential

    spark.sparkContext.addPyFile(str(Path(__file__).parent.parent / "docs" / "guide" / "exponential.py"))
    rng = np.random.default_rng(0)
    table = pa.table({"line": np.arange(400) % 4, "n": np.arange(400), "wait": rng.exponential(3.0, 400)})
    model = hf.SRA(model=Exponential(), gamma=8.0, rho=0.05)
    expected = hf.Fleet(model).process(table, key="line", values=["wait"], time="n")
    hs.score(spark.createDataFrame(table), "line", "wait", "n", model).write.parquet(str(tmp_path / "out"))
    same_answers(pq.read_table(tmp_path / "out"), expected, by="n")


def test_what_was_moved_under_a_running_query_is_refused(spark, tmp_path) -> None:
    table = stream_of(n_keys=10, n=300, seed=3)
    feed(tmp_path / "in", table, 1)
    streamed(spark, tmp_path, "sensor", ["a", "b"], "ts", PLAIN, buckets=2)
    checkpoint = tmp_path / "checkpoint"
    hs.rebucket(spark, checkpoint, 3)
    commit = checkpoint / "commits" / "1"
    commit.write_text((checkpoint / "commits" / "0").read_text())  # as a query does that has not been stopped
    stream = source(spark, tmp_path / "in")
    with pytest.raises(CheckpointError, match="went on without them to batch 1"):
        hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)
    commit.unlink()
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)
    commit.write_text("v1")  # from here on commits are those of the new generation
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)


def test_a_fleet_to_begin_with_is_not_passed_over_in_silence(spark, tmp_path) -> None:
    feed(tmp_path / "in", stream_of(n_keys=3, n=30, seed=4), 1)
    stream, fleet = source(spark, tmp_path / "in"), hf.Fleet(PLAIN)
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=tmp_path / "state")  # and never started
    with pytest.raises(CheckpointError, match="begun without initial"):
        hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=tmp_path / "state", initial=fleet)
