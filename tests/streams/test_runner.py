"""Runs that end too soon, and go on: what is learnt, read and told moves together."""

import itertools
import json
import logging
import sqlite3
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from limpet.exceptions import CheckpointError, InvalidInputError, LimpetWarning
from limpet.learners.serialization import unpack_container
from limpet.streams import Batch, SplitColumns, open_sink
from limpet.streams._prefetch import MAX_QUEUED_BATCHES

N = 600
rng = np.random.default_rng(0)
VALUES = rng.normal(20.0, 0.5, (N, 2)).round(3)
VALUES[300:, 0] += 3.0
VALUES[[150, 450]] = 90.0
VALUES[200] = np.nan
KEYS = [f"pump {i % 3}" for i in range(N)]
TIMES = np.arange(N) - 40.0 * (np.arange(N) % 50 == 7)  # some come late


class Crash(Exception):
    """In place of a kill: nothing is written down any more."""


class Rows:
    """Rows in batches of any size; breaks off after some of them."""

    def __init__(self, sizes=(37,), crash_after=None, keyed=False, width=1):
        self.sizes, self.crash_after, self.keyed, self.width, self.committed_at = sizes, crash_after, keyed, width, []

    def read(self, position):
        first = position or 0
        for nth, size in enumerate(itertools.cycle(self.sizes)):
            if nth == self.crash_after:
                raise Crash
            if first >= N:
                return
            rows = slice(first, first + size)
            first = min(first + size, N)
            keys = KEYS[rows] if self.keyed else None
            values, names = VALUES[rows, : self.width], ("a", "b")[: self.width]
            yield Batch(values, position=first, names=names, keys=keys, times=TIMES[rows])

    def committed(self, position):
        self.committed_at.append(position)


def sinks(folder):
    places = [("points.csv", "points"), ("all.db", "points"), ("all.db", "alarms"), ("alarms.jsonl", "alarms")]
    return [open_sink(str(folder / name), what) for name, what in places]


def written(folder):
    texts = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".jsonl")}
    with sqlite3.connect(folder / "all.db") as database:
        tables = {name: database.execute(f"select * from {name}").fetchall() for name in ("points", "alarms")}
    return texts, tables


def kept(folder):
    header, body = unpack_container(max((folder / "state").glob("*.limpet")).read_bytes())
    return {**header["tally"], "checkpoints": None}, header["position"], bytes(body)


MODELS = {
    "one stream": (lambda: lp.SRA(), Rows, {}),
    "plain": (lambda: lp.SRA(gamma=4.0, rho=0.02), Rows, {"width": 2}),
    "fleet": (lambda: lp.Fleet(lp.SRA()), Rows, {"keyed": True}),
    "separate": (lambda: lp.Fleet(lp.SRA()), lambda **how: SplitColumns(Rows(**how)), {"keyed": True, "width": 2}),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What comes of each model when nothing happens."""
    found = {}
    for name, (model, source, how) in MODELS.items():
        folder = tmp_path_factory.mktemp("whole")
        outcome = lp.run(source(**how), model(), sinks(folder), folder / "state", checkpoint_interval=0.0)
        found[name] = written(folder), kept(folder), outcome
    return found


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one == "plain")) for one in MODELS])
@settings(max_examples=3)
@given(
    crashes=st.lists(st.integers(0, 8), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=3),
    every=st.sampled_from([0.0, 1000.0]),
)
def test_it_goes_on_as_if_nothing_had_happened(name, crashes, sizes, every, whole, tmp_path_factory):
    model, source, how = MODELS[name]
    folder = tmp_path_factory.mktemp("broken")
    for crash_after in crashes:
        broken = source(sizes=sizes, crash_after=crash_after, **how)
        with suppress(Crash):  # unless it had come to its end
            lp.run(broken, model(), sinks(folder), folder / "state", checkpoint_interval=every)
    outcome = lp.run(source(sizes=sizes, **how), model(), sinks(folder), folder / "state", checkpoint_interval=every)
    assert written(folder) == whole[name][0]
    assert kept(folder) == whole[name][1]
    assert outcome.stats.alarms == whole[name][2].tally.alarms
    assert outcome.model.to_bytes() == whole[name][2].model.to_bytes()


def test_what_came_of_it_is_what_the_learner_says(whole):
    (_, tables), _, outcome = whole["one stream"]
    taken = np.maximum.accumulate(TIMES) <= TIMES
    model = lp.SRA()
    with pytest.warns(LimpetWarning, match="1 of 588 rows"):  # which a run has in its tally instead
        trace = model.process(VALUES[taken, 0])
    assert outcome.tally.late == (~taken).sum() == 12
    assert outcome.tally.points == taken.sum() == len(tables["points"])
    assert [row[4] for row in tables["points"]] == [None if s != s else s for s in trace.score.tolist()]
    assert [row[1] for row in tables["alarms"]] == np.flatnonzero(taken)[trace.alarm_index].tolist()
    assert outcome.tally.refused.counts == {"no value": 1}
    assert outcome.tally.n_alarms == len(trace.alarms) > 1


# Checkpoints


def a_broken_run(folder):
    with pytest.raises(Crash):
        lp.run(Rows(crash_after=6), lp.SRA(), sinks(folder), folder / "state", checkpoint_interval=0.0)
    return sorted((folder / "state").glob("*.limpet"))


@pytest.mark.parametrize("damage", ["torn", "altered", "empty"])
def test_a_damaged_checkpoint_is_passed_over(damage, whole, tmp_path, caplog):
    *_, before, newest = a_broken_run(tmp_path)
    data = bytearray(newest.read_bytes())
    if damage == "altered":
        data[len(data) // 2] ^= 1
    newest.write_bytes(data if damage == "altered" else data[: len(data) // 2] if damage == "torn" else b"")
    with caplog.at_level(logging.WARNING, "limpet.streams"):
        lp.run(Rows(), lp.SRA(), sinks(tmp_path), tmp_path / "state", checkpoint_interval=0.0)
    assert f"{newest} cannot be used" in caplog.text
    assert f"going on from the checkpoint before: {before}" in caplog.text
    assert written(tmp_path) == whole["one stream"][0]


def test_if_all_are_damaged_it_does_not_begin_anew_by_itself(tmp_path):
    checkpoints = a_broken_run(tmp_path)
    before = written(tmp_path)
    for path in checkpoints:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="none of the 3 checkpoints"):
        lp.run(Rows(), lp.SRA(), sinks(tmp_path), tmp_path / "state")
    assert written(tmp_path) == before


def test_the_last_three_are_kept(tmp_path):
    assert [path.name for path in a_broken_run(tmp_path)] == [f"checkpoint-{i:09d}.limpet" for i in (4, 5, 6)]


def test_other_settings_are_refused(tmp_path):
    a_broken_run(tmp_path)
    for model, told in ((lp.SRA(far=1e-3), "far = 0.0001, now it is 0.001"), (lp.Fleet(lp.SRA()), "fleet = False")):
        with pytest.raises(CheckpointError, match=told):
            lp.run(Rows(), model, sinks(tmp_path), tmp_path / "state")


def test_another_source_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("level\n" + "\n".join(map(str, VALUES[:100, 1])))
    lp.run("a.csv", lp.SRA(gamma=4.0, rho=0.02), (), "state")
    with pytest.raises(CheckpointError, match=r"made with source = a.csv, now it is b.csv"):
        lp.run("b.csv", lp.SRA(gamma=4.0, rho=0.02), (), "state")


def test_results_that_are_gone_are_noticed(tmp_path):
    a_broken_run(tmp_path)
    (tmp_path / "points.csv").write_bytes(b"")
    with pytest.raises(CheckpointError, match="lines are gone"):
        lp.run(Rows(), lp.SRA(), sinks(tmp_path), tmp_path / "state")


def test_a_folder_is_used_by_one_run_at_a_time(tmp_path):
    class Meanwhile(Rows):
        def read(self, position):
            with pytest.raises(InvalidInputError, match="in use by another run"):
                lp.run(Rows(), lp.SRA(), (), tmp_path)
            yield from super().read(position)

    assert lp.run(Meanwhile(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path).stats.records == N


def test_the_source_may_forget_only_what_has_been_made_sure_of(tmp_path):
    source = Rows(crash_after=6)
    with pytest.raises(Crash):
        lp.run(source, lp.SRA(), (), tmp_path, checkpoint_interval=0.0)
    assert source.committed_at[-1] <= unpack_container(max(tmp_path.glob("*.limpet")).read_bytes())[0]["position"]
    assert source.committed_at == sorted(source.committed_at)


# Ends and mistakes


def test_stop_learns_what_has_been_read_and_writes_it_down(tmp_path):
    stop = threading.Event()

    class Endless:
        def read(self, position):
            for first in itertools.count(position or 0, 10):
                yield Batch(np.full(10, 1.0 + first % 7), position=first + 10)
                if first == 500:
                    stop.set()

    outcome = lp.run(Endless(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path, stop=stop, checkpoint_interval=1000.0)
    assert 500 <= outcome.stats.records < 500 + 10 * (MAX_QUEUED_BATCHES + 20)
    assert unpack_container(max(tmp_path.glob("*.limpet")).read_bytes())[0]["position"] == outcome.stats.records


def test_stop_is_heeded_however_much_is_waiting():
    stop, given_out = threading.Event(), [0]

    class Fast:
        def read(self, position):
            for _ in range(100_000):
                yield Batch(np.zeros(3), position=0)

    def told(results):
        given_out[0] += 1
        stop.set()
        time.sleep(0.002)

    lp.run(Fast(), lp.SRA(gamma=4.0, rho=0.02), told, stop=stop)
    assert given_out[0] <= MAX_QUEUED_BATCHES + 4


def test_stop_hurries_a_sink_that_waits():
    stop, hurried = threading.Event(), threading.Event()

    class Waits:
        def write(self, results):
            stop.set()
            assert hurried.wait(10.0)

        def hurry(self):
            hurried.set()

    assert lp.run(Rows(), lp.SRA(gamma=4.0, rho=0.02), Waits(), stop=stop).stats.records < N


def test_a_source_that_is_too_fast_waits():
    ahead, given_out, most = [0], [0], [0]

    class Fast:
        def read(self, position):
            for _ in range(60):
                ahead[0] += 1
                yield Batch(np.zeros(3))

    def slow(results):
        given_out[0] += 1
        most[0] = max(most[0], ahead[0] - given_out[0])
        time.sleep(0.005)

    lp.run(Fast(), lp.SRA(gamma=4.0, rho=0.02), slow)
    assert given_out[0] == 60
    assert most[0] <= MAX_QUEUED_BATCHES + 2


def test_a_mistake_of_the_source_is_raised_where_it_was_called():
    class Wrong:
        def read(self, position):
            yield Batch(np.zeros(3))
            raise OSError("the cable is out")

    with pytest.raises(OSError, match="the cable is out"):
        lp.run(Wrong(), lp.SRA(gamma=4.0, rho=0.02))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "gives batches, got NoneType"),
        (np.zeros(3), "gives batches, got ndarray"),
        (Batch(np.zeros(3)), "must have the position after it"),
        (Batch(np.zeros(3), position=np.int64(3)), "a position is something that JSON can hold"),
    ],
)
def test_mistakes_of_a_source_are_told(given, message, tmp_path):
    class Wrong:
        def read(self, position):
            yield given

    with pytest.raises(InvalidInputError, match=message):
        lp.run(Wrong(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path)


def test_whatever_fails_all_is_closed_and_the_first_reason_told():
    closed = []

    class Fails:
        def __init__(self, name):
            self.name = name

        def write(self, results):
            raise OSError("the true reason")

        def close(self):
            closed.append(self.name)
            raise OSError("not this one")

    with pytest.raises(OSError, match="the true reason"):
        lp.run(Rows(), lp.SRA(gamma=4.0, rho=0.02), [Fails("a"), Fails("b")])
    assert closed == ["a", "b"]


def test_a_sink_of_ten_lines(tmp_path):
    class Alarms:
        def __init__(self):
            self.lines = []

        def write(self, results):
            self.lines += [json.dumps(row) for row in results.alarm_rows()]

    sink = Alarms()
    outcome = lp.run(Rows(), lp.SRA(), sink)
    assert len(sink.lines) == outcome.stats.n_alarms > 1


@pytest.mark.parametrize(
    ("source", "model", "sink", "message"),
    [
        (Rows(), lp.Fleet(lp.SRA()), (), "needs the key of each point"),
        (Rows(keyed=True), lp.SRA(), (), "for many streams give a Fleet"),
        (Rows(), "SRA", (), "expected a learner"),
        (17, lp.SRA(), (), "read\\(position\\)"),
        (Rows(), lp.SRA(), 17, "write\\(results\\)"),
        ("nowhere.csv", lp.SRA(), (), "there is no file nowhere.csv"),
        ("gopher://x/y", lp.SRA(), (), "there is no source gopher://"),
        (Rows(), lp.SRA(), "gopher://x/y", "there is no sink gopher://"),
        (Rows(), lp.SRA(), "results.xls", "ends in .jsonl, .csv, .parquet or .db"),
        (Rows(), lp.SRA(), "nowhere/results.csv", "there is no folder"),
    ],
)
def test_mistakes_are_told(source, model, sink, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        lp.run(source, model, sink)
