"""Checkpoints on Spark: restarts, other parameters, idle and late streams, initial and exported fleets, buckets."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import (
    SRA_LEARNER,
    ReferencePartition,
    assert_same_results,
    assert_same_streams,
    make_table,
    read_stream,
    run_query,
    score_stream,
    write_files,
)
from limpet import spark as ls
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.event_time import NO_TIME

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]
OTHER_SRA_LEARNER = lp.SRA(gamma=2.0, rho=0.05)
COLUMNS = ("sensor", ["a", "b"], "ts")


def compute_expected(pieces: list[pa.Table], models: list[lp.SRA], delay: int) -> tuple[pa.Table, ReferencePartition]:
    """Return the results of separate learners for micro-batches, with the watermark that Spark has after each."""
    reference, watermark, results = ReferencePartition(models[0], idle_timeout=400_000_000), NO_TIME, []
    for piece, model in zip(pieces, models, strict=True):
        if model is not reference.learner:
            reference.change_params(model)
        times = piece["ts"].cast(pa.int64()).to_pylist()
        points = np.column_stack([piece[name].fill_null(np.nan).to_numpy() for name in ("a", "b")])
        scored = reference.learn(list(zip(piece["sensor"].to_pylist(), times, points, strict=True)), watermark)
        for name, column in zip(ReferencePartition.fields, zip(*scored, strict=True), strict=True):
            piece = piece.append_column(name, pa.array(column))
        results.append(piece)
        watermark = max(watermark, (max(times) - delay) // 1000 * 1000)  # Spark counts milliseconds
    return pa.concat_tables(results), reference


def test_restarts_with_other_parameters_and_idle_and_late_streams(spark, tmp_path) -> None:
    table = make_table(n_keys=12, n=1800, seed=5)
    edges = range(0, 1800, 300)
    pieces = [table.slice(begin, 300) for begin in edges]
    rng = np.random.default_rng(6)
    moved = table.slice(0, 60).take(pa.array(rng.permutation(60)))  # late and duplicate rows
    pieces[4] = pa.concat_tables([pieces[4], moved])
    pieces[1] = pieces[1].filter(pa.compute.not_equal(pieces[1]["sensor"], "s003"))  # silent for a while
    pieces[2] = pieces[2].filter(pa.compute.not_equal(pieces[2]["sensor"], "s003"))
    for i in range(1, 6):
        pieces[i] = pieces[i].filter(pa.compute.not_equal(pieces[i]["sensor"], "s007"))  # permanently
    models = [SRA_LEARNER] * 3 + [OTHER_SRA_LEARNER] * 3
    expected, reference = compute_expected(pieces, models, 60_000_000)
    assert 50 < sum(expected["late"].to_pylist()) < 70
    options = {"watermark": "1 min", "idle_timeout": "400 s", "buckets": 5}
    (tmp_path / "in").mkdir()
    for half, model in ((0, SRA_LEARNER), (3, OTHER_SRA_LEARNER)):
        for i in range(half, half + 3):
            pq.write_table(pieces[i], tmp_path / "in" / f"{i}.parquet")
            os.utime(tmp_path / "in" / f"{i}.parquet", (1e9, 1e9 + i))
        out = score_stream(spark, tmp_path, *COLUMNS, model, **options)
    by = [("ts", "ascending"), ("late", "ascending")]
    assert_same_results(out, expected, by=by)
    fleet = ls.export_fleet(spark, tmp_path / "checkpoint")
    assert fleet.learner.gamma == 2.0
    active_keys = [key for key in reference.learners if key != "s007"]  # whose bucket may have had no rows since
    assert set(active_keys) <= set(fleet) <= {*active_keys, "s007"}
    for key in active_keys:
        assert np.array(fleet[key].state).tobytes() == np.array(reference.learners[key].state).tobytes(), key
    assert_fixed_parameters_raise(spark, tmp_path, options)


def assert_fixed_parameters_raise(spark, folder, options) -> None:
    frame, checkpoint = read_stream(spark, folder / "in"), str(folder / "checkpoint")
    files = sorted(os.listdir(folder / "checkpoint" / "limpet"))
    for columns, model, other, message in (
        (COLUMNS, lp.SRA(n_components=2, gamma=4.0, rho=0.01), {}, "learner: n_components must remain"),
        (COLUMNS, lp.Detector(), {}, "learner: must be SRA, .*, got Detector"),
        (COLUMNS, SRA_LEARNER, {"buckets": 6}, "buckets: must be 5, .*, got 6.*limpet.spark.repartition"),
        (("sensor", ["b", "a"], "ts"), SRA_LEARNER, {}, "the values must remain 'a', 'b', got 'b', 'a'"),
        (("note", ["a", "b"], "ts"), SRA_LEARNER, {}, "the key must remain 'sensor', got 'note'"),
        (
            ("sensor", ["a", "b"], "note"),
            SRA_LEARNER,
            {"watermark": None, "idle_timeout": None},
            "the time must remain 'ts', got 'note'",
        ),
    ):
        with pytest.raises(CheckpointError, match=message):
            ls.score(frame, *columns, model, checkpoint=checkpoint, **options | other)
    assert sorted(os.listdir(folder / "checkpoint" / "limpet")) == files


def test_initial_and_exported_fleets_with_other_buckets(spark, tmp_path) -> None:
    """A fleet file becomes states; buckets change before the first row and twice after; then a fleet continues."""
    table = make_table(n_keys=20, n=2000, seed=7, string_keys=False)
    few_keys = table.filter(pa.compute.less(table["sensor"], 3))  # most buckets see no rows
    fleet = lp.Fleet(SRA_LEARNER)
    fleet.process(table.slice(0, 500), key="sensor", values=["a", "b"])
    fleet.save(tmp_path / "fleet.limpet")
    checkpoint, provider = tmp_path / "checkpoint", "spark.sql.streaming.stateStore.providerClass"
    options = {"checkpoint": str(checkpoint)}
    default = spark.conf.get(provider)
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        write_files(tmp_path / "in", few_keys, 4)
        for change, message in (
            (("sensor", ["b", "a"], "ts", SRA_LEARNER), "values: must be a, b, .*, got b, a"),
            (("sensor", ["a", "b"], "ts", lp.SEM()), "learner: must be SRA, .*, got SEM"),
        ):
            with pytest.raises((InvalidInputError, CheckpointError), match=message):
                ls.score(read_stream(spark, tmp_path / "in"), *change, **options, initial=tmp_path / "fleet.limpet")
        scored = ls.score(
            read_stream(spark, tmp_path / "in"),
            *COLUMNS,
            SRA_LEARNER,
            buckets=8,
            **options,
            initial=tmp_path / "fleet.limpet",
        )
        assert scored.isStreaming
        with pytest.raises(CheckpointError, match="No batch has been committed"):
            ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, buckets=9, **options)
        assert_same_streams(ls.export_fleet(spark, checkpoint), fleet)
        ls.repartition(spark, checkpoint, 3)
        assert_same_streams(ls.export_fleet(spark, checkpoint), fleet)
        files = sorted((tmp_path / "in").iterdir())
        later = [(file, file.rename(tmp_path / file.name)) for file in files[2:]]
        run_query(ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, **options), tmp_path)
        ls.repartition(spark, checkpoint, 40)
        ls.repartition(spark, checkpoint, 2)
        for original, moved_to in later:
            moved_to.rename(original)
        run_query(ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, buckets=2, **options), tmp_path)
        expected = fleet.process(few_keys, key="sensor", values=["a", "b"], time="ts")
        assert_same_results(pq.read_table(tmp_path / "out"), expected)
        moved = ls.export_fleet(spark, checkpoint)
    finally:
        spark.conf.set(provider, default)
    assert_same_streams(moved, fleet)
    rest = table.slice(500, 500)
    assert_same_results(*(part.process(rest, key="sensor", values=["a", "b"]) for part in (moved, fleet)))


def test_states_are_checked_where_no_checkpoint_was_given(spark, tmp_path) -> None:
    write_files(tmp_path / "in", make_table(n_keys=5, n=100, seed=8), 2)
    second = tmp_path / "in" / "001-00.parquet"
    second.rename(tmp_path / "later")
    run_query(ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, buckets=2), tmp_path)
    (tmp_path / "later").rename(second)
    with pytest.raises(Exception, match=r"buckets: must be 2, generation 1, .*, got 3"):
        run_query(ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, buckets=3), tmp_path)
    with pytest.raises(CheckpointError, match="must have been created with checkpoint="):
        ls.score(read_stream(spark, tmp_path / "in"), *COLUMNS, SRA_LEARNER, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(InvalidInputError, match="checkpoint: must be a folder of score"):
        ls.export_fleet(spark, tmp_path / "checkpoint")
