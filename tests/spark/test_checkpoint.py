"""A checkpoint's life on Spark: restarts, other settings, silent and late streams, fleets that move up and down."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import PLAIN, Naive, feed, run, same_answers, same_streams, source, stream_of, streamed
from limpet import spark as hs
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.spark.event_time import NO_TIME

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]
RETUNED = lp.SRA(gamma=2.0, rho=0.05)
COLUMNS = ("sensor", ["a", "b"], "ts")


def expected_of(pieces: list[pa.Table], models: list[lp.SRA], delay: int) -> tuple[pa.Table, Naive]:
    """What learners by themselves make of micro-batches, with the watermark that Spark comes to after each."""
    naive, watermark, told = Naive(models[0], idle=400_000_000), NO_TIME, []
    for piece, model in zip(pieces, models, strict=True):
        if model is not naive.model:
            naive.retune(model)
        times = piece["ts"].cast(pa.int64()).to_pylist()
        points = np.column_stack([piece[name].fill_null(np.nan).to_numpy() for name in ("a", "b")])
        answers = naive.learn(list(zip(piece["sensor"].to_pylist(), times, points, strict=True)), watermark)
        for name, column in zip(("score", "rejected", "invalid", "late"), zip(*answers, strict=True), strict=True):
            piece = piece.append_column(name, pa.array(column))
        told.append(piece)
        watermark = max(watermark, (max(times) - delay) // 1000 * 1000)  # Spark counts milliseconds
    return pa.concat_tables(told), naive


def test_restarts_other_settings_idle_and_late_streams(spark, tmp_path) -> None:
    table = stream_of(n_keys=12, n=1800, seed=5)
    edges = range(0, 1800, 300)
    pieces = [table.slice(begin, 300) for begin in edges]
    rng = np.random.default_rng(6)
    moved = table.slice(0, 60).take(pa.array(rng.permutation(60)))  # these come much too late, and again
    pieces[4] = pa.concat_tables([pieces[4], moved])
    pieces[1] = pieces[1].filter(pa.compute.not_equal(pieces[1]["sensor"], "s003"))  # silent for a while
    pieces[2] = pieces[2].filter(pa.compute.not_equal(pieces[2]["sensor"], "s003"))
    for i in range(1, 6):
        pieces[i] = pieces[i].filter(pa.compute.not_equal(pieces[i]["sensor"], "s007"))  # for good
    models = [PLAIN] * 3 + [RETUNED] * 3
    expected, naive = expected_of(pieces, models, 60_000_000)
    assert 50 < sum(expected["late"].to_pylist()) < 70
    more = {"watermark": "1 min", "idle": "400 s", "buckets": 5}
    (tmp_path / "in").mkdir()
    for half, model in ((0, PLAIN), (3, RETUNED)):
        for i in range(half, half + 3):
            pq.write_table(pieces[i], tmp_path / "in" / f"{i}.parquet")
            os.utime(tmp_path / "in" / f"{i}.parquet", (1e9, 1e9 + i))
        out = streamed(spark, tmp_path, *COLUMNS, model, **more)
    by = [("ts", "ascending"), ("late", "ascending")]
    same_answers(out, expected, by=by)
    fleet = hs.export_fleet(spark, tmp_path / "checkpoint")
    assert fleet.learner.gamma == 2.0
    alive = [key for key in naive.learners if key != "s007"]  # whose bucket may have had no rows since
    assert set(alive) <= set(fleet) <= {*alive, "s007"}
    for key in alive:
        assert np.array(fleet[key].state).tobytes() == np.array(naive.learners[key].state).tobytes(), key
    refuses_what_cannot_change(spark, tmp_path, more)


def refuses_what_cannot_change(spark, place, more) -> None:
    frame, checkpoint = source(spark, place / "in"), str(place / "checkpoint")
    kept = sorted(os.listdir(place / "checkpoint" / "limpet"))
    for columns, model, other, message in (
        (COLUMNS, lp.SRA(n_components=2, gamma=4.0, rho=0.01), {}, "n_components cannot change"),
        (COLUMNS, lp.SRA(), {}, "gamma, rho cannot change"),
        (COLUMNS, PLAIN, {"buckets": 6}, "5 buckets, got 6: limpet.spark.rebucket"),
        (("sensor", ["b", "a"], "ts"), PLAIN, {}, "the values 'a', 'b', got 'b', 'a'"),
        (("note", ["a", "b"], "ts"), PLAIN, {}, "the key 'sensor', got 'note'"),
        (("sensor", ["a", "b"], "note"), PLAIN, {"watermark": None, "idle": None}, "the time 'ts', got 'note'"),
    ):
        with pytest.raises(CheckpointError, match=message):
            hs.score(frame, *columns, model, checkpoint=checkpoint, **more | other)
    assert sorted(os.listdir(place / "checkpoint" / "limpet")) == kept


def test_fleets_move_up_and_down_and_buckets_change(spark, tmp_path) -> None:
    """A fleet's file becomes states; buckets change before the first row and twice after; then a fleet goes on."""
    table = stream_of(n_keys=20, n=2000, seed=7, texts=False)
    quiet = table.filter(pa.compute.less(table["sensor"], 3))  # most buckets see no rows
    fleet = lp.Fleet(PLAIN)
    fleet.process(table.slice(0, 500), key="sensor", values=["a", "b"])
    fleet.save(tmp_path / "fleet.limpet")
    checkpoint, provider = tmp_path / "checkpoint", "spark.sql.streaming.stateStore.providerClass"
    more = {"checkpoint": str(checkpoint)}
    usual = spark.conf.get(provider)
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        feed(tmp_path / "in", quiet, 4)
        for change, message in (
            (("sensor", ["b", "a"], "ts", PLAIN), "its streams are of a, b, the values are b, a"),
            (("sensor", ["a", "b"], "ts", lp.SEM()), "learnt by SRA, which SEM cannot go on with"),
        ):
            with pytest.raises((InvalidInputError, CheckpointError), match=message):
                hs.score(source(spark, tmp_path / "in"), *change, **more, initial=tmp_path / "fleet.limpet")
        scored = hs.score(
            source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=8, **more, initial=tmp_path / "fleet.limpet"
        )
        assert scored.isStreaming
        with pytest.raises(CheckpointError, match="no batch has been committed there"):
            hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=9, **more)
        same_streams(hs.export_fleet(spark, checkpoint), fleet)
        hs.repartition(spark, checkpoint, 3)
        same_streams(hs.export_fleet(spark, checkpoint), fleet)
        files = sorted((tmp_path / "in").iterdir())
        later = [(file, file.rename(tmp_path / file.name)) for file in files[2:]]
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, **more), tmp_path)
        hs.repartition(spark, checkpoint, 40)
        hs.repartition(spark, checkpoint, 2)
        for there, here in later:
            here.rename(there)
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=2, **more), tmp_path)
        expected = fleet.process(quiet, key="sensor", values=["a", "b"], time="ts")
        same_answers(pq.read_table(tmp_path / "out"), expected)
        moved = hs.export_fleet(spark, checkpoint)
    finally:
        spark.conf.set(provider, usual)
    same_streams(moved, fleet)
    rest = table.slice(500, 500)
    same_answers(*(one.process(rest, key="sensor", values=["a", "b"]) for one in (moved, fleet)))


def test_states_are_looked_at_by_themselves_where_no_checkpoint_was_told(spark, tmp_path) -> None:
    feed(tmp_path / "in", stream_of(n_keys=5, n=100, seed=8), 2)
    second = tmp_path / "in" / "001-00.parquet"
    second.rename(tmp_path / "later")
    run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=2), tmp_path)
    (tmp_path / "later").rename(second)
    with pytest.raises(Exception, match="this state is of 2 buckets, generation 1; the job has 3"):
        run(hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, buckets=3), tmp_path)
    with pytest.raises(CheckpointError, match="begun without checkpoint="):
        hs.score(source(spark, tmp_path / "in"), *COLUMNS, PLAIN, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(InvalidInputError, match="is no checkpoint of score"):
        hs.export_fleet(spark, tmp_path / "checkpoint")
