"""Checkpoints on Spark: restarts, other parameters, idle and late streams, initial and exported fleets, buckets."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import PLAIN, Naive, run, same_results, same_streams, source, stream_of, streamed, write_files
from limpet import spark as hs
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.event_time import NO_TIME

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]
CHANGED = lp.SRA(gamma=2.0, rho=0.05)
COLUMNS = ("sensor", ["a", "b"], "ts")


def expected_of(pieces: list[pa.Table], models: list[lp.SRA], delay: int) -> tuple[pa.Table, Naive]:
    """Return the results of separate learners for micro-batches, with the watermark that Spark has after each."""
    naive, watermark, results = Naive(models[0], idle_timeout=400_000_000), NO_TIME, []
    for piece, model in zip(pieces, models, strict=True):
        if model is not naive.learner:
            naive.change_params(model)
        times = piece["ts"].cast(pa.int64()).to_pylist()
        points = np.column_stack([piece[name].fill_null(np.nan).to_numpy() for name in ("a", "b")])
        scored = naive.learn(list(zip(piece["sensor"].to_pylist(), times, points, strict=True)), watermark)
        for name, column in zip(Naive.fields, zip(*scored, strict=True), strict=True):
            piece = piece.append_column(name, pa.array(column))
        results.append(piece)
        watermark = max(watermark, (max(times) - delay) // 1000 * 1000)  # Spark counts milliseconds
    return pa.concat_tables(results), naive


def test_restarts_other_settings_idle_and_late_streams(spark, tmp_path) -> None:
    table = stream_of(n_keys=12, n=1800, seed=5)
    edges = range(0, 1800, 300)
    pieces = [table.slice(begin, 300) for begin in edges]
    rng = np.random.default_rng(6)
    moved = table.slice(0, 60).take(pa.array(rng.permutation(60)))  # these arrive much too late, and again
    pieces[4] = pa.concat_tables([pieces[4], moved])
    pieces[1] = pieces[1].filter(pa.compute.not_equal(pieces[1]["sensor"], "s003"))  # silent for a while
    pieces[2] = pieces[2].filter(pa.compute.not_equal(pieces[2]["sensor"], "s003"))
    for i in range(1, 6):
        pieces[i] = pieces[i].filter(pa.compute.not_equal(pieces[i]["sensor"], "s007"))  # permanently
    models = [PLAIN] * 3 + [CHANGED] * 3
    expected, naive = expected_of(pieces, models, 60_000_000)
    assert 50 < sum(expected["late"].to_pylist()) < 70
    more = {"watermark": "1 min", "idle_timeout": "400 s", "buckets": 5}
    (tmp_path / "in").mkdir()
    for half, model in ((0, PLAIN), (3, CHANGED)):
        for i in range(half, half + 3):
            pq.write_table(pieces[i], tmp_path / "in" / f"{i}.parquet")
            os.utime(tmp_path / "in" / f"{i}.parquet", (1e9, 1e9 + i))
        out = streamed(spark, tmp_path, *COLUMNS, model, **more)
    by = [("ts", "ascending"), ("late", "ascending")]
    same_results(out, expected, by=by)
    fleet = hs.export_fleet(spark, tmp_path / "checkpoint")
    assert fleet.learner.gamma == 2.0
    alive = [key for key in naive.learners if key != "s007"]  # whose bucket may have had no rows since
    assert set(alive) <= set(fleet) <= {*alive, "s007"}
    for key in alive:
        assert np.array(fleet[key].state).tobytes() == np.array(naive.learners[key].state).tobytes(), key
    refuses_what_cannot_change(spark, tmp_path, more)


def refuses_what_cannot_change(spark, folder, more) -> None:
    frame, checkpoint = source(spark, folder / "in"), str(folder / "checkpoint")
    kept = sorted(os.listdir(folder / "checkpoint" / "limpet"))
    for columns, model, other, message in (
        (COLUMNS, lp.SRA(n_components=2, gamma=4.0, rho=0.01), {}, "learner: n_components must remain"),
        (COLUMNS, lp.Detector(), {}, "learner: must be SRA, .*, got Detector"),
        (COLUMNS, PLAIN, {"buckets": 6}, "buckets: must be 5, .*, got 6.*limpet.spark.repartition"),
        (("sensor", ["b", "a"], "ts"), PLAIN, {}, "the values must remain 'a', 'b', got 'b', 'a'"),
        (("note", ["a", "b"], "ts"), PLAIN, {}, "the key must remain 'sensor', got 'note'"),
        (
            ("sensor", ["a", "b"], "note"),
            PLAIN,
            {"watermark": None, "idle_timeout": None},
            "the time must remain 'ts', got 'note'",
        ),
    ):
        with pytest.raises(CheckpointError, match=message):
            hs.score(frame, *columns, model, checkpoint=checkpoint, **more | other)
    assert sorted(os.listdir(folder / "checkpoint" / "limpet")) == kept


def test_initial_and_exported_fleets_with_other_buckets(spark, tmp_path) -> None:
    """A fleet file becomes states; buckets change before the first row and twice after; then a fleet continues."""
    table = stream_of(n_keys=20, n=2000, seed=7, string_keys=False)
    quiet = table.filter(pa.compute.less(table["sensor"], 3))  # most buckets see no rows
    fleet = lp.Fleet(PLAIN)
    fleet.process(table.slice(0, 500), key="sensor", values=["a", "b"])
    fleet.save(tmp_path / "fleet.limpet")
    checkpoint, provider = tmp_path / "checkpoint", "spark.sql.streaming.stateStore.providerClass"
    more = {"checkpoint": str(checkpoint)}
    usual = spark.conf.get(provider)
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        write_files(tmp_path / "in", quiet, 4)
        for change, message in (
            (("sensor", ["b", "a"], "ts", PLAIN), "values: must be a, b, .*, got b, a"),
            (("sensor", ["a", "b"], "ts", lp.SEM()), "learner: must be SRA, .*, got SEM"),
        ):
            with pytest.raises((InvalidInputError, CheckpointError), match=message):
                hs.score(source(spark, tmp_path / "in"), *change, **more, initial=tmp_path / "fleet.limpet")
        scored = hs.score(
            source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=8, **more, initial=tmp_path / "fleet.limpet"
        )
        assert scored.isStreaming
        with pytest.raises(CheckpointError, match="No batch has been committed"):
            hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=9, **more)
        same_streams(hs.export_fleet(spark, checkpoint), fleet)
        hs.repartition(spark, checkpoint, 3)
        same_streams(hs.export_fleet(spark, checkpoint), fleet)
        files = sorted((tmp_path / "in").iterdir())
        later = [(file, file.rename(tmp_path / file.name)) for file in files[2:]]
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, **more), tmp_path)
        hs.repartition(spark, checkpoint, 40)
        hs.repartition(spark, checkpoint, 2)
        for original, moved_to in later:
            moved_to.rename(original)
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=2, **more), tmp_path)
        expected = fleet.process(quiet, key="sensor", values=["a", "b"], time="ts")
        same_results(pq.read_table(tmp_path / "out"), expected)
        moved = hs.export_fleet(spark, checkpoint)
    finally:
        spark.conf.set(provider, usual)
    same_streams(moved, fleet)
    rest = table.slice(500, 500)
    same_results(*(part.process(rest, key="sensor", values=["a", "b"]) for part in (moved, fleet)))


def test_states_are_checked_where_no_checkpoint_was_given(spark, tmp_path) -> None:
    write_files(tmp_path / "in", stream_of(n_keys=5, n=100, seed=8), 2)
    second = tmp_path / "in" / "001-00.parquet"
    second.rename(tmp_path / "later")
    run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=2), tmp_path)
    (tmp_path / "later").rename(second)
    with pytest.raises(Exception, match=r"buckets: must be 2, generation 1, .*, got 3"):
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=3), tmp_path)
    with pytest.raises(CheckpointError, match="must have been created with checkpoint="):
        hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(InvalidInputError, match="checkpoint: must be a folder of score"):
        hs.export_fleet(spark, tmp_path / "checkpoint")
