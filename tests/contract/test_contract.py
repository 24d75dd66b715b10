"""The laws, for every learner and model."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import limpet as lp
from contract.cases import CASES, assert_same, assert_sound
from limpet.exceptions import InvalidInputError, LimpetError, LimpetWarning
from limpet.learners.results import AUTO_RESULT_FIELDS

# Whether a component has a copy or many rows are dropped depends on the stream drawn: it may be told.
pytestmark = pytest.mark.filterwarnings(
    "ignore:component . of . has:limpet.exceptions.LimpetWarning",
    "ignore:.*rows were rejected:limpet.exceptions.LimpetWarning",
)

ROWS = 160
IN_RESCUE = 3 * ROWS // 4 + 7  # the streams of the autopilot have jumped, and it has not yet begun anew
LONG = ("autopilot, d=3, diagonal",)  # to compile


def parametrized(cases):
    params = [pytest.param(case, marks=[pytest.mark.long] if str(case) in LONG else []) for case in cases]
    return pytest.mark.parametrize("case", params, ids=[str(case) for case in cases])


every_case = parametrized(CASES)
on_autopilot = parametrized([case for case in CASES if case.on_autopilot])
seeds = st.integers(0, 2**32 - 1)
cuts = st.lists(st.integers(0, ROWS), max_size=5).map(lambda c: [0, *sorted(c), ROWS])


def stream_of(case, seed=0, n=ROWS):
    return case.stream(np.random.default_rng(seed), n)


def rows_of(stream):
    """The stream as the arguments of one `update` after another."""
    return list(zip(*stream, strict=True))


def case_bytes(case):
    """A learner that has seen nothing, and raises at bad points."""
    learner = case.learner()
    learner.on_invalid = "raise"
    return learner.to_bytes()


def rows_told(alarms, kind):
    return [alarm.row for alarm in alarms if alarm.kind == kind]


def cut(stream, start, stop):
    return tuple(part[start:stop] for part in stream)


@every_case
@given(seed=seeds, cuts=cuts)
@example(seed=0, cuts=[0, IN_RESCUE, ROWS])
def test_batch_is_loop_however_it_is_cut(case, seed, cuts):
    stream = stream_of(case, seed)
    record = case.learner().model.recorded
    whole, loop, pieces = case.learner(), case.learner(), case.learner()
    trace = whole.process(*stream, record=record)
    steps = [loop.update(*row) for row in rows_of(stream)]
    traces = [pieces.process(*cut(stream, a, b), record=record) for a, b in pairwise(cuts) if a < b]
    assert_same(loop.state, whole.state)
    assert_same(pieces.state, whole.state)
    for name in AUTO_RESULT_FIELDS:
        assert_same([getattr(step, name) for step in steps], getattr(trace, name))
        assert_same(np.concatenate([getattr(t, name) for t in traces]), getattr(trace, name))
    for alarms in ([a for step in steps for a in step.alarms], [a for t in traces for a in t.alarms]):
        assert alarms == trace.alarms
    first_of_run = trace.anomaly & ~np.append(False, trace.anomaly[:-1])
    assert rows_told(trace.alarms, "anomaly") == np.flatnonzero(first_of_run).tolist()
    assert rows_told(trace.alarms, "change") == np.flatnonzero(trace.change).tolist()
    assert_same(np.concatenate([t.recorded[record] for t in traces]), trace.recorded[record])
    assert_same(trace.recorded[record][-1], whole._estimate(record))


@every_case
@given(seed=seeds, at=st.integers(0, ROWS - 1))
@example(seed=0, at=IN_RESCUE)
def test_restored_is_continued(case, seed, at):
    stream = stream_of(case, seed)
    whole, first = case.learner(), case.learner()
    trace = whole.process(*stream)
    if at:
        first.process(*cut(stream, 0, at))
    for again in (lp.from_bytes(first.to_bytes()), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert repr(again) == repr(first)
        assert again.to_bytes() == first.to_bytes()
        continued = again.process(*cut(stream, at, ROWS))
        assert_same(again.state, whole.state)
        for name in AUTO_RESULT_FIELDS:
            assert_same(getattr(continued, name), getattr(trace, name)[at:])
        assert continued.alarms == [alarm for alarm in trace.alarms if alarm.row >= at]
    assert first.n_seen == at


def long_to_compile(cases):
    """Each needs an entry point that few others do: a few of them always, the rest where there is time."""
    always = ("autopilot", "SRA", "SRA, patience", "SRA, d=3, gaps", "linear")
    params = [pytest.param(case, marks=[] if str(case) in always else [pytest.mark.long]) for case in cases]
    return pytest.mark.parametrize("case", params, ids=[str(case) for case in cases])


@long_to_compile(CASES)
def test_assessed_is_what_is_said_next_and_learns_nothing(case):
    stream = stream_of(case)
    learner = case.learner()
    for at in (60, IN_RESCUE, IN_RESCUE + 3):
        learner.process(*cut(stream, learner.n_seen, at))
        before = learner.to_bytes()
        row = [part.item() if np.size(part) == 1 else part for part in rows_of(cut(stream, at, at + 1))[0]]
        said = learner.assess(*row)
        batch = learner.assess(*cut(stream, at, at + 5))
        assert learner.to_bytes() == before
        assert repr(batch.step(0)) == repr(said)
        next_said = lp.from_bytes(before).update(*row)
        for name in ("score", "rejected", "p_value", "anomaly", "invalid"):
            assert_same(getattr(said, name), getattr(next_said, name))


@long_to_compile(CASES)
def test_in_place_is_loop(case):
    stream = stream_of(case)
    loop, quick = case.learner(), case.learner()
    half = 70
    alarms = loop.process(*stream).alarms
    told = list(quick.process(*cut(stream, 0, half)).alarms)
    place = quick.in_place()
    for row in rows_of(cut(stream, half, ROWS)):
        place.put(*np.concatenate([np.atleast_1d(part) for part in row]))
        place.assess()
        score = place.score[0]
        place.learn()
        if place.fate[0]:
            told += quick.follow_up(place.fate[0])
        assert score == score
    assert_same(quick.state, loop.state)
    assert told == alarms


@every_case
def test_saved_is_loaded(case, tmp_path):
    learner = case.learner()
    learner.process(*stream_of(case))
    learner.save(tmp_path / "model.limpet")
    assert lp.load(tmp_path / "model.limpet").to_bytes() == learner.to_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["model.limpet"]


@every_case
@given(
    seed=seeds,
    places=st.lists(st.integers(0, ROWS), min_size=1, max_size=8),
    bad=st.sampled_from([np.nan, np.inf]),
)
def test_bad_points_never_poison(case, seed, places, bad):
    stream = stream_of(case, seed)
    clean, dirty = case.learner(), case.learner()
    clean_trace = clean.process(*stream)
    broken = tuple(np.insert(part.astype(float), sorted(places), bad, axis=0) for part in stream)
    with pytest.warns(LimpetWarning, match=f"{len(places)} of {ROWS + len(places)} rows could not be used"):
        trace = dirty.process(*broken)
    assert trace.bad.sum() == dirty.n_invalid == len(places)
    assert np.isnan(trace.score[trace.bad]).all()
    assert not trace.dropped[trace.bad].any()
    if not case.keeps_time:
        assert_same(trace.score[~trace.bad], clean_trace.score)
        for name in dirty.model.estimates:
            assert_same(getattr(dirty, name), getattr(clean, name))
    assert_sound(dirty)
    loop = case.learner()
    for row in rows_of(broken):
        loop.update(*row)
    assert_same(loop.state, dirty.state)


@every_case
def test_bad_points_raise_where_asked_and_nothing_is_learnt(case):
    learner = case.learner()
    learner.on_invalid = "raise"
    stream = stream_of(case)
    with pytest.raises(InvalidInputError, match="row 0"):
        learner.process(*(np.full_like(part[:5], np.inf) for part in stream))
    assert learner.to_bytes() == case_bytes(case)
    learner.process(*stream)
    before = learner.to_bytes()
    broken = tuple(part.astype(float) for part in stream_of(case, 1))
    for part in broken:
        part[3] = np.inf
    with pytest.raises(InvalidInputError, match="row 3"):
        learner.process(*broken)
    with pytest.raises(InvalidInputError):
        learner.update(*(part[3] for part in broken))
    assert learner.to_bytes() == before


@every_case
@given(seed=seeds)
def test_estimates_are_sound_and_counts_agree(case, seed):
    learner = case.learner()
    trace = learner.process(*stream_of(case, seed))
    assert_sound(learner)
    assert learner.n_seen == ROWS
    assert learner.n_rejected == trace.dropped.sum()
    assert learner.n_invalid == 0
    assert np.isnan(trace.score[: learner.n_init]).all()
    assert np.isfinite(trace.score[learner.n_init :]).all()
    if case.on_autopilot:
        change_score, p_value = trace.change_score[learner.n_init :], trace.p_value[learner.n_init :]
        assert ((change_score >= 0.0) & (change_score < 1.0)).all()
        assert ((p_value > 0.0) & (p_value <= 1.0)).all()
        assert np.isnan([trace.change_score[: learner.n_init], trace.p_value[: learner.n_init]]).all()
    else:
        assert_same(trace.change_score[~trace.dropped], trace.score[~trace.dropped])
        assert np.isnan(trace.change_score[trace.dropped]).all()


@on_autopilot
def test_the_streams_of_the_autopilot_have_it_all(case):
    """Otherwise the laws would say little."""
    learner = case.learner()
    trace = learner.process(*stream_of(case))
    assert trace.dropped[IN_RESCUE - 5 : IN_RESCUE].all()  # locked out for a moment …
    assert not trace.dropped[-5:].all()  # … and no longer
    kinds = {alarm.kind for alarm in trace.alarms}
    assert kinds == ({"anomaly"} if case.keeps_time else {"anomaly", "change"})  # its profile is still being learnt
    assert (learner.means > 30.0).all()


@every_case
def test_score_is_the_next_one_and_learns_nothing(case):
    learner = case.learner()
    stream = stream_of(case)
    learner.process(*cut(stream, 0, 100))
    before = learner.to_bytes()
    alone = [float(np.ravel(learner.score(*row))[0]) for row in rows_of(cut(stream, 100, 110))]
    assert_same(alone, learner.score(*cut(stream, 100, 110)))
    assert learner.to_bytes() == before
    assert learner.update(*rows_of(stream)[100]).score == alone[0]


@every_case
def test_a_dropped_point_changes_nothing_but_its_count(case):
    learner = case.learner()
    stream = stream_of(case, n=2000)
    trace = learner.process(*stream)
    if not np.isfinite(learner._effective_gamma(learner._width)):
        assert not trace.dropped.any()
        return
    row = int(np.flatnonzero(trace.dropped)[-1])
    before, after = case.learner(), case.learner()
    before.process(*cut(stream, 0, row))
    after.process(*cut(stream, 0, row + 1))
    assert after.n_rejected == before.n_rejected + 1
    for name in case.learner().model.estimates:
        assert_same(getattr(before, name), getattr(after, name))
    if not case.on_autopilot:  # which also takes note of it
        assert_same(before._engine.cell.theta, after._engine.cell.theta)


@every_case
@pytest.mark.parametrize(
    "wrong",
    ["text", None, dict.fromkeys("abcdefghi", 1.0), [[1.0, 2.0]], [1.0] * 9, [], 1j, ["1", "2", "3"]],
    ids=repr,
)
def test_wrong_input_is_refused_and_changes_nothing(case, wrong):
    learner = case.learner()
    stream = stream_of(case)
    learner.process(*stream)
    before = learner.to_bytes()
    target = (0.0,) if learner.model.supervised else ()
    with pytest.raises(LimpetError, match=r"expected|unknown"):
        learner.update(wrong, *target)
    with pytest.raises(LimpetError):
        learner.process(np.zeros((5, 9)), *(np.zeros(5) for _ in target))
    with pytest.raises(LimpetError, match=r"pairs|alone"):
        learner.update(rows_of(stream)[0][0], *(() if target else (1.0,)))
    assert learner.to_bytes() == before


@every_case
def test_clone_has_the_settings_and_has_seen_nothing(case):
    learner = case.learner()
    learner.process(*stream_of(case))
    fresh = learner.clone()
    assert repr(fresh) == repr(learner)
    assert fresh.n_seen == 0
    fresh.process(*stream_of(case))
    assert_same(fresh.state, learner.state)
    with pytest.raises(ValueError, match="read-only"):
        learner.state[0] = 1.0
