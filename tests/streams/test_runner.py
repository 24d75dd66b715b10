"""Interrupted runs: state, source position and sink offset are checkpointed atomically."""

import itertools
import json
import logging
import sqlite3
import sys
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
from limpet.streams import BaseSink, BaseSource, Batch, SplitColumns, open_sink, open_source
from limpet.streams.monitor_plan import warmup_points
from limpet.streams.runner import MAX_QUEUED_BATCHES

N = 600
rng = np.random.default_rng(0)
VALUES = rng.normal(20.0, 0.5, (N, 2)).round(3)
VALUES[300:, 0] += 3.0
VALUES[[150, 450]] = 90.0
VALUES[200] = np.nan
KEYS = [f"pump {i % 3}" for i in range(N)]
TIMES = np.arange(N) - 40.0 * (np.arange(N) % 50 == 7)  # some are late


class Crash(Exception):
    """Simulates a kill: nothing more is written."""


class Rows(BaseSource):
    """Rows in batches of any size; fails after some of them."""

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

    def commit(self, position):
        self.committed_at.append(position)


def sinks(folder):
    uris = [("points.csv", "points"), ("all.db", "points"), ("all.db", "alarms"), ("alarms.jsonl", "alarms")]
    return [open_sink(str(folder / name), table) for name, table in uris]


def read_results(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".jsonl")}
    with sqlite3.connect(folder / "all.db") as database:
        tables = {name: database.execute(f"select * from {name}").fetchall() for name in ("points", "alarms")}
    return files, tables


def read_checkpoint(folder):
    header, body = unpack_container(max((folder / "state").glob("*.limpet")).read_bytes())
    return {**header["stats"], "checkpoints": None}, header["position"], bytes(body)


MODELS = {
    "one stream": (lambda: lp.Detector(), Rows, {}),
    "plain": (lambda: lp.SRA(gamma=4.0, rho=0.02), Rows, {"width": 2}),
    "fleet": (lambda: lp.Fleet(lp.Detector()), Rows, {"keyed": True}),
    "separate": (
        lambda: lp.Fleet(lp.Detector()),
        lambda **kwargs: SplitColumns(Rows(**kwargs)),
        {"keyed": True, "width": 2},
    ),
}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The results of uninterrupted runs, by model."""
    results = {}
    for name, (model, source, kwargs) in MODELS.items():
        folder = tmp_path_factory.mktemp("whole")
        outcome = lp.run(source(**kwargs), model(), sinks(folder), folder / "state", checkpoint_interval=0.0)
        results[name] = read_results(folder), read_checkpoint(folder), outcome
    return results


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name == "plain")) for name in MODELS])
@settings(max_examples=3)
@given(
    crashes=st.lists(st.integers(0, 8), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=3),
    checkpoint_interval=st.sampled_from([0.0, 1000.0]),
)
def test_interrupted_run_equals_uninterrupted_run(
    name, crashes, sizes, checkpoint_interval, uninterrupted, tmp_path_factory
):
    model, source, kwargs = MODELS[name]
    folder = tmp_path_factory.mktemp("broken")
    for crash_after in crashes:
        interrupted = source(sizes=sizes, crash_after=crash_after, **kwargs)
        with suppress(Crash):  # unless it was finished
            lp.run(interrupted, model(), sinks(folder), folder / "state", checkpoint_interval=checkpoint_interval)
    outcome = lp.run(
        source(sizes=sizes, **kwargs), model(), sinks(folder), folder / "state", checkpoint_interval=checkpoint_interval
    )
    assert read_results(folder) == uninterrupted[name][0]
    assert read_checkpoint(folder) == uninterrupted[name][1]
    assert outcome.stats.alarms == uninterrupted[name][2].stats.alarms
    assert outcome.learner.to_bytes() == uninterrupted[name][2].learner.to_bytes()


def test_results_equal_those_of_the_learner(uninterrupted):
    (_, tables), _, outcome = uninterrupted["one stream"]
    accepted = np.maximum.accumulate(TIMES) <= TIMES
    model = lp.Detector()
    with pytest.warns(LimpetWarning, match="1 of 588 rows"):  # a run counts them instead
        trace = model.process(VALUES[accepted, 0])
    assert outcome.stats.late == (~accepted).sum() == 12
    assert outcome.stats.points == accepted.sum() == len(tables["points"])
    assert [row[4] for row in tables["points"]] == [None if s != s else s for s in trace.score.tolist()]
    assert [row[1] for row in tables["alarms"]] == np.flatnonzero(accepted)[trace.alarm_index].tolist()
    assert outcome.stats.invalid.counts == {"no value": 1}
    assert outcome.stats.malformed.total == 0
    assert outcome.stats.n_alarms == len(trace.alarms) > 1


# Checkpoints


def interrupt_run(folder):
    with pytest.raises(Crash):
        lp.run(Rows(crash_after=6), lp.Detector(), sinks(folder), folder / "state", checkpoint_interval=0.0)
    return sorted((folder / "state").glob("*.limpet"))


@pytest.mark.parametrize("damage", ["torn", "altered", "empty"])
def test_damaged_checkpoint_is_skipped(damage, uninterrupted, tmp_path, caplog):
    *_, before, newest = interrupt_run(tmp_path)
    data = bytearray(newest.read_bytes())
    if damage == "altered":
        data[len(data) // 2] ^= 1
    newest.write_bytes(data if damage == "altered" else data[: len(data) // 2] if damage == "torn" else b"")
    with caplog.at_level(logging.WARNING, "limpet.streams"):
        lp.run(Rows(), lp.Detector(), sinks(tmp_path), tmp_path / "state", checkpoint_interval=0.0)
    assert f"{newest} cannot be used" in caplog.text
    assert f"resuming from the previous checkpoint: {before}" in caplog.text
    assert read_results(tmp_path) == uninterrupted["one stream"][0]


def test_all_checkpoints_damaged_raises(tmp_path):
    checkpoints = interrupt_run(tmp_path)
    before = read_results(tmp_path)
    for path in checkpoints:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="checkpoint: all 3"):
        lp.run(Rows(), lp.Detector(), sinks(tmp_path), tmp_path / "state")
    assert read_results(tmp_path) == before


def test_checkpoints_of_another_format_raise(tmp_path):
    for path in interrupt_run(tmp_path):
        path.rename(path.with_suffix(".old"))
    before = read_results(tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint: must be .* with checkpoint-000000004.old"):
        lp.run(Rows(), lp.Detector(), sinks(tmp_path), tmp_path / "state")
    assert read_results(tmp_path) == before


def test_last_three_checkpoints_are_kept(tmp_path):
    assert [path.name for path in interrupt_run(tmp_path)] == [f"checkpoint-{i:09d}.limpet" for i in (4, 5, 6)]


def test_other_parameters_raise(tmp_path):
    interrupt_run(tmp_path)
    for model, message in (
        (lp.Detector(far=1e-3), "far: the checkpoint has 0.0001, got 0.001"),
        (lp.Fleet(lp.Detector()), "fleet: "),
    ):
        with pytest.raises(CheckpointError, match=message):
            lp.run(Rows(), model, sinks(tmp_path), tmp_path / "state")


def test_another_source_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("level\n" + "\n".join(map(str, VALUES[:100, 1])))
    lp.run("a.csv", lp.SRA(gamma=4.0, rho=0.02), (), "state")
    with pytest.raises(CheckpointError, match=r"source: the checkpoint has .*a\.csv, got .*b\.csv"):
        lp.run("b.csv", lp.SRA(gamma=4.0, rho=0.02), (), "state")


def test_missing_results_raise(tmp_path):
    interrupt_run(tmp_path)
    (tmp_path / "points.csv").write_bytes(b"")
    with pytest.raises(CheckpointError, match="Lines are missing"):
        lp.run(Rows(), lp.Detector(), sinks(tmp_path), tmp_path / "state")


def test_checkpoint_directory_is_locked(tmp_path):
    class LocksDirectory(Rows):
        def read(self, position):
            with pytest.raises(InvalidInputError, match="in use by another run"):
                lp.run(Rows(), lp.Detector(), (), tmp_path)
            yield from super().read(position)

    assert lp.run(LocksDirectory(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path).stats.records == N


def test_source_commits_after_checkpoint(tmp_path):
    source = Rows(crash_after=6)
    with pytest.raises(Crash):
        lp.run(source, lp.Detector(), (), tmp_path, checkpoint_interval=0.0)
    assert source.committed_at[-1] <= unpack_container(max(tmp_path.glob("*.limpet")).read_bytes())[0]["position"]
    assert source.committed_at == sorted(source.committed_at)


# Stopping, and errors


def test_stop_processes_batches_already_read(tmp_path):
    stop = threading.Event()

    class Endless(BaseSource):
        def read(self, position):
            for first in itertools.count(position or 0, 10):
                yield Batch(np.full(10, 1.0 + first % 7), position=first + 10)
                if first == 500:
                    stop.set()

    outcome = lp.run(Endless(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path, stop=stop, checkpoint_interval=1000.0)
    assert 500 <= outcome.stats.records < 500 + 10 * (MAX_QUEUED_BATCHES + 20)
    assert unpack_container(max(tmp_path.glob("*.limpet")).read_bytes())[0]["position"] == outcome.stats.records


def test_stop_with_a_full_queue():
    stop, n_results = threading.Event(), [0]

    class Fast(BaseSource):
        def read(self, position):
            for _ in range(100_000):
                yield Batch(np.zeros(3), position=0)

    def on_results(results):
        n_results[0] += 1
        stop.set()
        time.sleep(0.002)

    lp.run(Fast(), lp.SRA(gamma=4.0, rho=0.02), on_results, stop=stop)
    assert n_results[0] <= MAX_QUEUED_BATCHES + 4


def test_stop_unblocks_a_sink():
    stop, unblocked = threading.Event(), threading.Event()

    class Waits(BaseSink):
        def write(self, results):
            stop.set()
            assert unblocked.wait(10.0)

        def stop_waiting(self):
            unblocked.set()

    assert lp.run(Rows(), lp.SRA(gamma=4.0, rho=0.02), Waits(), stop=stop).stats.records < N


def test_fast_source_is_blocked():
    n_read, n_results, max_ahead = [0], [0], [0]

    class Fast(BaseSource):
        def read(self, position):
            for _ in range(60):
                n_read[0] += 1
                yield Batch(np.zeros(3))

    def slow(results):
        n_results[0] += 1
        max_ahead[0] = max(max_ahead[0], n_read[0] - n_results[0])
        time.sleep(0.005)

    lp.run(Fast(), lp.SRA(gamma=4.0, rho=0.02), slow)
    assert n_results[0] == 60
    assert max_ahead[0] <= MAX_QUEUED_BATCHES + 2


def test_errors_of_the_source_are_raised():
    class Wrong(BaseSource):
        def read(self, position):
            yield Batch(np.zeros(3))
            raise OSError("the cable is out")

    with pytest.raises(OSError, match="the cable is out"):
        lp.run(Wrong(), lp.SRA(gamma=4.0, rho=0.02))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (None, "yield batches, got NoneType"),
        (np.zeros(3), "yield batches, got ndarray"),
        (Batch(np.zeros(3)), "position: each batch"),
        (Batch(np.zeros(3), position=np.int64(3)), "position: JSON must"),
    ],
)
def test_invalid_batches_raise(batch, message, tmp_path):
    class Wrong(BaseSource):
        def read(self, position):
            yield batch

    with pytest.raises(InvalidInputError, match=message):
        lp.run(Wrong(), lp.SRA(gamma=4.0, rho=0.02), (), tmp_path)


def test_all_sinks_are_closed_and_the_first_error_raised():
    closed = []

    class Fails(BaseSink):
        def __init__(self, name):
            self.name = name

        def write(self, results):
            raise OSError("the first error")

        def close(self):
            closed.append(self.name)
            raise OSError("not this one")

    with pytest.raises(OSError, match="the first error"):
        lp.run(Rows(), lp.SRA(gamma=4.0, rho=0.02), [Fails("a"), Fails("b")])
    assert closed == ["a", "b"]


def test_custom_sink(tmp_path):
    class Alarms(BaseSink):
        def __init__(self):
            self.lines = []

        def write(self, results):
            self.lines += [json.dumps(row) for row in results.alarm_records()]

    sink = Alarms()
    outcome = lp.run(Rows(), lp.Detector(), sink)
    assert len(sink.lines) == outcome.stats.n_alarms > 1


@pytest.mark.parametrize(
    ("source", "model", "sink", "message"),
    [
        (Rows(), lp.Fleet(lp.Detector()), (), "key: a Fleet needs"),
        (Rows(keyed=True), lp.Detector(), (), "learner: must be a Fleet"),
        (Rows(), "SRA", (), "learner: must be"),
        (17, lp.Detector(), (), "source: must be"),
        (Rows(), lp.Detector(), 17, "sink: must be"),
        ("nowhere.csv", lp.Detector(), (), "source: must be an existing file, got nowhere.csv"),
        ("gopher://x/y", lp.Detector(), (), "source: unknown scheme gopher://"),
        (Rows(), lp.Detector(), "gopher://x/y", "sink: unknown scheme gopher://"),
        (Rows(), lp.Detector(), "results.xls", "must be .jsonl, .csv, .parquet or .db"),
        (Rows(), lp.Detector(), "nowhere/results.csv", "does not exist"),
    ],
)
def test_invalid_arguments_raise(source, model, sink, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        lp.run(source, model, sink)


# Schemes of other packages

DEMO_PACKAGE = """
from limpet.streams import BaseSink, BaseSource, Batch

class DemoSource(BaseSource):
    def __init__(self, n, columns, follow):
        self.n, self.spec, self.follow = n, columns, follow

    @classmethod
    def from_url(cls, url, *, columns, follow):
        return cls(int(url.removeprefix("demo://")), columns, follow)

    def read(self, position):
        for start in range(position or 0, self.n, 100):
            yield Batch(range(start, start + 100), position=start + 100)

class DemoSink(BaseSink):
    written = {}

    def __init__(self, url, table):
        self.name = f"{table} to {url}"

    def write(self, results):
        self.written[self.name] = self.written.get(self.name, 0) + len(results.trace)

def make_sink(url, *, table):
    return DemoSink(url, table)
"""


@pytest.fixture
def demo_package(tmp_path, monkeypatch):
    """A distribution with entry points, as an installer leaves it."""
    (tmp_path / "limpet_demo.py").write_text(DEMO_PACKAGE)
    info = tmp_path / "limpet_demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: limpet-demo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[limpet.sources]\ndemo = limpet_demo:DemoSource.from_url\n"
        "[limpet.sinks]\ndemo-bus = limpet_demo:make_sink\nlost = limpet_demo_lost:make_sink\nold = limpet_demo:old\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("limpet_demo", None)


def test_schemes_of_entry_points(demo_package):
    source = open_source("demo://1000", columns="a")
    assert (source.n, source.spec.columns, source.follow) == (1000, ("a",), True)
    sink = open_sink("demo-bus://here", "points")
    result = lp.run("demo://1000", lp.SRA(gamma=4.0, rho=0.02), [sink, "demo-bus://there"])
    assert result.stats.points == 1000
    assert sink.written == {"points to demo-bus://here": 1000, "alarms to demo-bus://there": 1000}


def test_unknown_schemes_list_the_known_ones(demo_package):
    with pytest.raises(InvalidInputError, match="demo://, kafka://, mqtt://, mqtts://, nats://, paths, and -"):
        open_source("gopher://me:secret@x/y")
    with pytest.raises(InvalidInputError, match=r"demo-bus://, http://, https://, kafka://, .*, paths, and -"):
        open_sink("gopher://me:secret@x/y")


@pytest.mark.parametrize("scheme", ["lost", "old"])
def test_a_factory_that_cannot_be_loaded_is_named(demo_package, scheme):
    with pytest.raises(InvalidInputError, match=rf"limpet\.sinks: the entry point {scheme} = limpet_demo.* cannot be"):
        open_sink(f"{scheme}://x")


@pytest.mark.parametrize("params", [{}, {"memory": "compact"}, {"n_init": 200}])
def test_warm_up_ends_where_the_first_change_alarm_is_possible(params):
    """Up to there the evidence stays that of no point; from there on every point changes it."""
    learner, evidence = lp.Detector(**params), []
    for value in np.random.default_rng(1).normal(size=300):
        learner.update(value)
        evidence.append(learner.change_evidence())
    n_warmup = warmup_points(lp.Detector(**params))
    assert (np.diff(evidence[n_warmup - 1 : n_warmup + 20]) != 0.0).all()
    assert len(set(evidence[: n_warmup - 1])) <= 2  # no evidence; and −∞ before the initialization
