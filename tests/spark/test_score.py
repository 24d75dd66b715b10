"""Spark returns the results of a fleet to the last bit: batch and streaming, for any partitions and micro-batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import (
    SRA_LEARNER,
    assert_same_alarms,
    assert_same_results,
    assert_same_streams,
    make_table,
    read_stream,
    score_stream,
    write_files,
)
from limpet import spark as ls
from limpet.exceptions import CheckpointError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

DETECTOR = lp.Detector(memory="compact")


def add_tied_times(table: pa.Table) -> pa.Table:
    """Add a column of times that many rows share."""
    return table.append_column("minutes", pa.compute.floor_temporal(table["ts"], 7, "minute"))


@pytest.mark.parametrize(
    ("model", "buckets", "pieces", "files"),
    [(SRA_LEARNER, 1, 2, 1), (SRA_LEARNER, 5, 2, 3), (DETECTOR, 64, 3, 1), (DETECTOR, 5, 3, 3)],
    ids=["SRA ties", "SRA", "detector ties", "detector"],
)
def test_streaming_equals_a_fleet(spark, tmp_path, model, buckets, pieces, files) -> None:
    """If a micro-batch is one file, rows of equal times are learned in input order."""
    table = add_tied_times(make_table(n_keys=20, n=2500, seed=buckets))
    table_written, time, fleet = (
        write_files(tmp_path / "in", table, pieces, files),
        "minutes" if files == 1 else "ts",
        lp.Fleet(model),
    )
    expected = fleet.process(table_written, key="sensor", values=["a", "b"], time=time)
    out = score_stream(spark, tmp_path, "sensor", ["a", "b"], time, model, buckets=buckets, files=files)
    assert_same_results(out, expected)
    assert_same_streams(ls.export_fleet(spark, tmp_path / "checkpoint"), fleet)
    if model is DETECTOR:
        assert_same_alarms(out, table_written, model, time)


@pytest.mark.parametrize("model", [SRA_LEARNER, DETECTOR], ids=["SRA", "detector"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_batch_equals_a_fleet(spark, tmp_path, model, partitions) -> None:
    """In one partition rows of equal times are learned in input order."""
    table = add_tied_times(make_table(n_keys=20, n=2500, seed=partitions))
    table_written, time = write_files(tmp_path / "in", table, 1), "minutes" if partitions == 1 else "ts"
    expected = lp.Fleet(model).process(table_written, key="sensor", values=["a", "b"], time=time)
    frame = spark.read.parquet(str(tmp_path / "in"))
    frame = frame.repartition(partitions) if partitions > 1 else frame
    ls.score(frame, "sensor", ["a", "b"], time, model).write.parquet(str(tmp_path / "out"))
    out = pq.read_table(tmp_path / "out")
    assert_same_results(out, expected)
    if model is DETECTOR:
        assert_same_alarms(out, table_written, model, time)


def test_stream_continues_a_history(spark, tmp_path) -> None:
    """The history by its times; the stream, which has none, in input order: one file per micro-batch."""
    table = make_table(n_keys=30, n=3000, seed=9, string_keys=False)
    write_files(tmp_path / "before", table[:2000], 1, 3)
    table_written = write_files(tmp_path / "in", table[2000:], 2)
    fleet = lp.Fleet(SRA_LEARNER)
    fleet.process(table[:2000], key="sensor", values=["a", "b"], time="ts")
    expected = fleet.process(table_written, key="sensor", values=["a", "b"])
    history = ls.fit(spark.read.parquet(str(tmp_path / "before")), "sensor", ["a", "b"], "ts", SRA_LEARNER)
    out = score_stream(spark, tmp_path, "sensor", ["a", "b"], None, SRA_LEARNER, buckets=8, initial=history)
    assert "late" not in out.column_names
    assert_same_results(out, expected)
    assert_same_streams(ls.export_fleet(spark, tmp_path / "checkpoint"), fleet)


def test_a_user_defined_model(spark, tmp_path) -> None:
    from exponential import Exponential

    spark.sparkContext.addPyFile(str(Path(__file__).parents[2] / "docs" / "how-to" / "exponential.py"))
    rng = np.random.default_rng(0)
    table = pa.table({"line": np.arange(400) % 4, "n": np.arange(400), "wait": rng.exponential(3.0, 400)})
    model = lp.SRA(model=Exponential(), gamma=8.0, rho=0.05)
    expected = lp.Fleet(model).process(table, key="line", values=["wait"], time="n")
    ls.score(spark.createDataFrame(table), "line", "wait", "n", model).write.parquet(str(tmp_path / "out"))
    assert_same_results(pq.read_table(tmp_path / "out"), expected, by="n")


def test_repartitioning_an_uncommitted_checkpoint_raises(spark, tmp_path) -> None:
    table = make_table(n_keys=10, n=300, seed=3)
    write_files(tmp_path / "in", table, 2)
    score_stream(spark, tmp_path, "sensor", ["a", "b"], "ts", SRA_LEARNER, buckets=2)
    checkpoint = tmp_path / "checkpoint"
    commit = checkpoint / "commits" / "1"
    commit.rename(tmp_path / "1")  # as if the job had been killed between the sink's commit and this one
    with pytest.raises(CheckpointError, match="got batch 1 processed but not committed"):
        ls.repartition(spark, checkpoint, 3)
    first = checkpoint / "commits" / "0"
    first.rename(tmp_path / "0")
    (checkpoint / "offsets" / "1").rename(tmp_path / "offset")
    with pytest.raises(CheckpointError, match="got batch 0 processed but not committed"):
        ls.repartition(spark, checkpoint, 3)
    (tmp_path / "offset").rename(checkpoint / "offsets" / "1")
    (tmp_path / "0").rename(first)
    (tmp_path / "1").rename(commit)
    ls.repartition(spark, checkpoint, 3)
    commit = checkpoint / "commits" / "2"
    commit.write_text((checkpoint / "commits" / "1").read_text())  # as a query does that has not been stopped
    stream = read_stream(spark, tmp_path / "in")
    with pytest.raises(CheckpointError, match="continued without these states to batch 2"):
        ls.score(stream, "sensor", ["a", "b"], "ts", SRA_LEARNER, checkpoint=checkpoint)
    commit.unlink()
    ls.score(stream, "sensor", ["a", "b"], "ts", SRA_LEARNER, checkpoint=checkpoint)
    commit.write_text("v1")  # from here on commits are those of the new generation
    ls.score(stream, "sensor", ["a", "b"], "ts", SRA_LEARNER, checkpoint=checkpoint)


def test_initial_fleet_on_an_existing_checkpoint_raises(spark, tmp_path) -> None:
    write_files(tmp_path / "in", make_table(n_keys=3, n=30, seed=4), 1)
    stream, fleet = read_stream(spark, tmp_path / "in"), lp.Fleet(SRA_LEARNER)
    ls.score(stream, "sensor", ["a", "b"], "ts", SRA_LEARNER, checkpoint=tmp_path / "state")  # and never started
    with pytest.raises(CheckpointError, match="initial: must be given when a checkpoint is created"):
        ls.score(stream, "sensor", ["a", "b"], "ts", SRA_LEARNER, checkpoint=tmp_path / "state", initial=fleet)
