"""Spark returns the results of a fleet to the last bit: batch and streaming, for any partitions and micro-batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import PLAIN, same_alarms, same_results, same_streams, source, stream_of, streamed, write_files
from limpet import spark as hs
from limpet.exceptions import CheckpointError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

DETECTOR = lp.Detector(memory="compact")


def with_ties(table: pa.Table) -> pa.Table:
    """Add a column of times that many rows share."""
    return table.append_column("minutes", pa.compute.floor_temporal(table["ts"], 7, "minute"))


@pytest.mark.parametrize(
    ("model", "buckets", "pieces", "files"),
    [(PLAIN, 1, 2, 1), (PLAIN, 5, 2, 3), (DETECTOR, 64, 3, 1), (DETECTOR, 5, 3, 3)],
    ids=["plain ties", "plain", "detector ties", "detector"],
)
def test_streaming_is_the_fleet(spark, tmp_path, model, buckets, pieces, files) -> None:
    """If a micro-batch is one file, rows of equal times are learned in input order."""
    table = with_ties(stream_of(n_keys=20, n=2500, seed=buckets))
    fed, time, fleet = (
        write_files(tmp_path / "in", table, pieces, files),
        "minutes" if files == 1 else "ts",
        lp.Fleet(model),
    )
    expected = fleet.process(fed, key="sensor", values=["a", "b"], time=time)
    out = streamed(spark, tmp_path, "sensor", ["a", "b"], time, model, buckets=buckets, files=files)
    same_results(out, expected)
    same_streams(hs.export_fleet(spark, tmp_path / "checkpoint"), fleet)
    if model is DETECTOR:
        same_alarms(out, fed, model, time)


@pytest.mark.parametrize("model", [PLAIN, DETECTOR], ids=["plain", "detector"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_batch_is_the_fleet(spark, tmp_path, model, partitions) -> None:
    """In one partition rows of equal times are learned in input order."""
    table = with_ties(stream_of(n_keys=20, n=2500, seed=partitions))
    fed, time = write_files(tmp_path / "in", table, 1), "minutes" if partitions == 1 else "ts"
    expected = lp.Fleet(model).process(fed, key="sensor", values=["a", "b"], time=time)
    frame = spark.read.parquet(str(tmp_path / "in"))
    frame = frame.repartition(partitions) if partitions > 1 else frame
    hs.score(frame, "sensor", ["a", "b"], time, model).write.parquet(str(tmp_path / "out"))
    out = pq.read_table(tmp_path / "out")
    same_results(out, expected)
    if model is DETECTOR:
        same_alarms(out, fed, model, time)


def test_history_then_the_stream(spark, tmp_path) -> None:
    """The history by its times; the stream, which has none, in input order: one file per micro-batch."""
    table = stream_of(n_keys=30, n=3000, seed=9, string_keys=False)
    write_files(tmp_path / "before", table[:2000], 1, 3)
    fed = write_files(tmp_path / "in", table[2000:], 2)
    fleet = lp.Fleet(PLAIN)
    fleet.process(table[:2000], key="sensor", values=["a", "b"], time="ts")
    expected = fleet.process(fed, key="sensor", values=["a", "b"])
    history = hs.fit(spark.read.parquet(str(tmp_path / "before")), "sensor", ["a", "b"], "ts", PLAIN)
    out = streamed(spark, tmp_path, "sensor", ["a", "b"], None, PLAIN, buckets=8, initial=history)
    assert "late" not in out.column_names
    same_results(out, expected)
    same_streams(hs.export_fleet(spark, tmp_path / "checkpoint"), fleet)


def test_a_user_defined_model(spark, tmp_path) -> None:
    from exponential import Exponential

    spark.sparkContext.addPyFile(str(Path(__file__).parents[2] / "docs" / "how-to" / "exponential.py"))
    rng = np.random.default_rng(0)
    table = pa.table({"line": np.arange(400) % 4, "n": np.arange(400), "wait": rng.exponential(3.0, 400)})
    model = lp.SRA(model=Exponential(), gamma=8.0, rho=0.05)
    expected = lp.Fleet(model).process(table, key="line", values=["wait"], time="n")
    hs.score(spark.createDataFrame(table), "line", "wait", "n", model).write.parquet(str(tmp_path / "out"))
    same_results(pq.read_table(tmp_path / "out"), expected, by="n")


def test_a_checkpoint_that_was_repartitioned_in_use_is_refused(spark, tmp_path) -> None:
    table = stream_of(n_keys=10, n=300, seed=3)
    write_files(tmp_path / "in", table, 2)
    streamed(spark, tmp_path, "sensor", ["a", "b"], "ts", PLAIN, buckets=2)
    checkpoint = tmp_path / "checkpoint"
    commit = checkpoint / "commits" / "1"
    commit.rename(tmp_path / "1")  # as if the job had been killed between the sink's commit and this one
    with pytest.raises(CheckpointError, match="got batch 1 processed but not committed"):
        hs.repartition(spark, checkpoint, 3)
    first = checkpoint / "commits" / "0"
    first.rename(tmp_path / "0")
    (checkpoint / "offsets" / "1").rename(tmp_path / "offset")
    with pytest.raises(CheckpointError, match="got batch 0 processed but not committed"):
        hs.repartition(spark, checkpoint, 3)
    (tmp_path / "offset").rename(checkpoint / "offsets" / "1")
    (tmp_path / "0").rename(first)
    (tmp_path / "1").rename(commit)
    hs.repartition(spark, checkpoint, 3)
    commit = checkpoint / "commits" / "2"
    commit.write_text((checkpoint / "commits" / "1").read_text())  # as a query does that has not been stopped
    stream = source(spark, tmp_path / "in")
    with pytest.raises(CheckpointError, match="continued without these states to batch 2"):
        hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)
    commit.unlink()
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)
    commit.write_text("v1")  # from here on commits are those of the new generation
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=checkpoint)


def test_an_initial_fleet_is_not_ignored_silently(spark, tmp_path) -> None:
    write_files(tmp_path / "in", stream_of(n_keys=3, n=30, seed=4), 1)
    stream, fleet = source(spark, tmp_path / "in"), lp.Fleet(PLAIN)
    hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=tmp_path / "state")  # and never started
    with pytest.raises(CheckpointError, match="initial: must be given when a checkpoint is created"):
        hs.score(stream, "sensor", ["a", "b"], "ts", PLAIN, checkpoint=tmp_path / "state", initial=fleet)
