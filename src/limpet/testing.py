"""Checks that every learner satisfies, custom ones included.

`check_learner` runs them all; each is a function. A failed check raises AssertionError.

Examples
--------
>>> from limpet import SRA
>>> from limpet.models import PoissonMixture
>>> def counts(rng, n):
...     return (rng.poisson(4.0, n).astype(float),)
>>> check_learner(lambda: SRA(model=PoissonMixture(), gamma=5.0), counts)
"""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError, LimpetError, LimpetWarning
from limpet.learners.base import Learner, from_bytes, load
from limpet.learners.results import AUTO_RESULT_FIELDS, Trace

Array = npt.NDArray[Any]
MakeLearner = Callable[[], Learner]
Stream = tuple[Array, ...]
"""The arguments of `process`: points, and targets for a regression."""

WRONG_INPUTS: Any = ("text", None, dict.fromkeys("abcdefghi", 1.0), [[1.0, 2.0]], [1.0] * 9, [], 1j, ["1", "2", "3"])


def check_learner(
    make_learner: MakeLearner,
    make_stream: Callable[[np.random.Generator, int], Stream] | None = None,
    *,
    n_rows: int = 160,
    seed: int = 0,
) -> None:
    """Check that a learner satisfies the contract of all learners.

    Batches, single points and restored states give the same bits; invalid points change nothing but counters; wrong
    input is refused; estimates are finite; methods that do not learn leave the state unchanged.

    Parameters
    ----------
    make_learner : callable
        Returns a new, untrained learner at each call.
    make_stream : callable, optional
        ``make_stream(rng, n)`` returns the arguments of `process`: a tuple with n points, and for a regression n
        targets. Default: Gaussian points of one variable with 5 % outliers.
    n_rows : int
        Length of the stream, of which a part is used by each check; at least 160.
    seed : int
        Seed of the stream.

    Raises
    ------
    AssertionError
        If a check fails.
    """
    make_stream = _gaussian_stream if make_stream is None else make_stream
    stream = tuple(np.asarray(part) for part in make_stream(np.random.default_rng(seed), n_rows))
    middle = 3 * n_rows // 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        check_batch_is_loop(make_learner, stream, [0, 7, n_rows // 2, middle, n_rows])
        for row in (0, n_rows // 3, middle):
            check_restored_is_continued(make_learner, stream, row)
        check_score_only(make_learner, stream, [60, middle])
        check_fast_path(make_learner, stream, n_rows // 2)
        check_saved_is_loaded(make_learner, stream)
        for value in (np.nan, np.inf):
            check_invalid_points(make_learner, stream, [0, n_rows // 2, n_rows], value)
        check_invalid_points_raise(make_learner, stream)
        check_estimates(make_learner, stream)
        check_score(make_learner, stream, n_rows // 2)
        for wrong in WRONG_INPUTS:
            check_wrong_input(make_learner, stream, wrong)
        check_clone(make_learner, stream)


def check_batch_is_loop(make_learner: MakeLearner, stream: Stream, cuts: Sequence[int]) -> None:
    """Check that `process` gives the bits of `update`, however the stream is split."""
    record = make_learner().model.recordable
    whole, loop, pieces = make_learner(), make_learner(), make_learner()
    trace = whole.process(*stream, record=record)
    steps = [loop.update(*row) for row in _rows(stream)]
    traces = [pieces.process(*_cut(stream, a, b), record=record) for a, b in pairwise(cuts) if a < b]
    assert_same_bits(loop.state, whole.state, "state after `update`")
    assert_same_bits(pieces.state, whole.state, "state after batches")
    for name in AUTO_RESULT_FIELDS:
        assert_same_bits([getattr(step, name) for step in steps], getattr(trace, name), f"{name} of `update`")
        assert_same_bits(np.concatenate([getattr(t, name) for t in traces]), getattr(trace, name), f"{name} of batches")
    _require([alarm for step in steps for alarm in step.alarms] == trace.alarms, "alarms of `update` differ")
    _require([alarm for t in traces for alarm in t.alarms] == trace.alarms, "alarms of batches differ")
    starts_run = trace.anomaly & ~np.append(False, trace.anomaly[:-1])
    _require(_alarm_rows(trace, "anomaly") == np.flatnonzero(starts_run).tolist(), "anomaly alarms and flags differ")
    _require(_alarm_rows(trace, "change") == np.flatnonzero(trace.change).tolist(), "change alarms and flags differ")
    assert_same_bits(np.concatenate([t.recorded[record] for t in traces]), trace.recorded[record], "recorded estimates")
    assert_same_bits(trace.recorded[record][-1], whole.estimate(record), "last recorded estimate")


def check_restored_is_continued(make_learner: MakeLearner, stream: Stream, row: int) -> None:
    """Check that a restored, copied or unpickled learner continues with equal bits."""
    import pickle

    whole, first = make_learner(), make_learner()
    trace = whole.process(*stream)
    if row:
        first.process(*_cut(stream, 0, row))
    for restored in (from_bytes(first.to_bytes()), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        _require(repr(restored) == repr(first), "parameters of the restored learner differ")
        _require(restored.to_bytes() == first.to_bytes(), "bytes of the restored learner differ")
        continued = restored.process(*_cut(stream, row, len(stream[0])))
        assert_same_bits(restored.state, whole.state, "state of the restored learner")
        for name in AUTO_RESULT_FIELDS:
            assert_same_bits(getattr(continued, name), getattr(trace, name)[row:], f"{name} of the restored learner")
        _require(continued.alarms == [alarm for alarm in trace.alarms if alarm.row >= row], "alarms differ")
    _require(first.n_seen == row, "restoring changed the original")


def check_score_only(make_learner: MakeLearner, stream: Stream, rows: Sequence[int]) -> None:
    """Check that `score_only` returns what `update` would, and learns nothing."""
    learner = make_learner()
    for row in rows:
        learner.process(*_cut(stream, learner.n_seen, row))
        before = learner.to_bytes()
        point = [part.item() if np.size(part) == 1 else part for part in _rows(_cut(stream, row, row + 1))[0]]
        step = learner.score_only(*point)
        batch = learner.score_only(*_cut(stream, row, row + 5))
        _require(learner.to_bytes() == before, "score_only learns")
        _require(repr(batch.step(0)) == repr(step), "score_only differs between a point and a batch")
        updated = from_bytes(before).update(*point)
        for name in ("score", "rejected", "p_value", "anomaly", "invalid"):
            assert_same_bits(getattr(step, name), getattr(updated, name), f"{name} of score_only")


def check_fast_path(make_learner: MakeLearner, stream: Stream, row: int) -> None:
    """Check that learning through `fast_path` gives the bits of `process`."""
    whole, fast = make_learner(), make_learner()
    alarms = list(fast.process(*_cut(stream, 0, row)).alarms)
    path = fast.fast_path()
    for point in _rows(_cut(stream, row, len(stream[0]))):
        path.write_point(*np.concatenate([np.atleast_1d(part) for part in point]))
        path.score_only()
        path.learn()
        if path.outcome[0]:
            alarms += fast.handle_outcome(path.outcome[0])
    _require(alarms == whole.process(*stream).alarms, "alarms of the fast path differ")
    assert_same_bits(fast.state, whole.state, "state of the fast path")


def check_saved_is_loaded(make_learner: MakeLearner, stream: Stream) -> None:
    """Check that a file loads with the same bytes, and no other file is written."""
    learner = make_learner()
    learner.process(*stream)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.limpet"
        learner.save(path)
        _require(load(path).to_bytes() == learner.to_bytes(), "bytes of the loaded learner differ")
        _require(list(Path(folder).iterdir()) == [path], "save leaves other files")


def check_invalid_points(make_learner: MakeLearner, stream: Stream, rows: Sequence[int], value: float) -> None:
    """Check that invalid points before `rows` are counted and change nothing else."""
    clean, dirty, loop = make_learner(), make_learner(), make_learner()
    clean_trace = clean.process(*stream)
    broken = tuple(np.insert(part.astype(float), sorted(rows), value, axis=0) for part in stream)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LimpetWarning)
        trace = dirty.process(*broken)
    expected = f"{len(rows)} of {len(broken[0])} rows"
    _require(any(expected in str(warning.message) for warning in caught), "invalid points raise no warning")
    _require(trace.invalid.sum() == dirty.n_invalid == len(rows), "invalid points are miscounted")
    _require(bool(np.isnan(trace.score[trace.invalid]).all()), "invalid points have a score")
    _require(not trace.rejected[trace.invalid].any(), "invalid points count as rejected")
    if not getattr(clean, "season", 0):  # with a season, time passes with invalid points as well
        assert_same_bits(trace.score[~trace.invalid], clean_trace.score, "scores beside invalid points")
        for name in dirty.model.estimates:
            assert_same_bits(dirty.estimate(name), clean.estimate(name), f"{name} beside invalid points")
    assert_sound(dirty)
    for row in _rows(broken):
        loop.update(*row)
    assert_same_bits(loop.state, dirty.state, "state after `update` with invalid points")


def check_invalid_points_raise(make_learner: MakeLearner, stream: Stream) -> None:
    """Check that ``on_invalid="raise"`` raises for invalid points and learns nothing."""
    untrained, learner = make_learner(), make_learner()
    untrained.on_invalid = learner.on_invalid = "raise"
    with _raises("row 0"):
        learner.process(*(np.full_like(part[:5], np.inf, float) for part in stream))
    _require(learner.to_bytes() == untrained.to_bytes(), "an invalid first batch changes the learner")
    learner.process(*stream)
    before = learner.to_bytes()
    broken = tuple(part.astype(float) for part in stream)
    for part in broken:
        part[3] = np.inf
    with _raises("row 3"):
        learner.process(*broken)
    with _raises(""):
        learner.update(*(part[3] for part in broken))
    _require(learner.to_bytes() == before, "a batch with an invalid point changes the learner")


def check_estimates(make_learner: MakeLearner, stream: Stream) -> None:
    """Check that estimates are sound, counters match, scores after the start finite."""
    learner = make_learner()
    trace = learner.process(*stream)
    assert_sound(learner)
    _require(learner.n_seen == len(trace) == len(stream[0]), "n_seen is wrong")
    _require(learner.n_rejected == trace.rejected.sum(), "n_rejected and `rejected` differ")
    _require(learner.n_invalid == 0, "valid points count as invalid")
    start, rest = slice(learner.n_init), slice(learner.n_init, None)
    _require(bool(np.isnan(trace.score[start]).all()), "points of the initialization have a score")
    _require(bool(np.isfinite(trace.score[rest]).all()), "a score is not finite")
    if learner.is_auto:
        change_score, p_value = trace.change_score[rest], trace.p_value[rest]
        _require(bool(((change_score >= 0.0) & (change_score < 1.0)).all()), "a change score lies outside [0, 1)")
        _require(bool(((p_value > 0.0) & (p_value <= 1.0)).all()), "a p-value lies outside (0, 1]")
        _require(bool(np.isnan([trace.change_score[start], trace.p_value[start]]).all()), "scores before the start")
    else:
        kept = ~trace.rejected
        assert_same_bits(trace.change_score[kept], trace.score[kept], "change scores")
        _require(bool(np.isnan(trace.change_score[trace.rejected]).all()), "rejected points have a change score")


def check_score(make_learner: MakeLearner, stream: Stream, row: int) -> None:
    """Check that `score` is that of the next point, also in batches; learns nothing."""
    learner = make_learner()
    learner.process(*_cut(stream, 0, row))
    before = learner.to_bytes()
    batch = _cut(stream, row, row + 10)
    scores = [float(np.ravel(learner.score(*point))[0]) for point in _rows(batch)]
    assert_same_bits(scores, learner.score(*batch), "scores of points and of a batch")
    _require(learner.to_bytes() == before, "score learns")
    assert_same_bits(learner.update(*_rows(batch)[0]).score, scores[0], "score of the next point")


def check_wrong_input(make_learner: MakeLearner, stream: Stream, wrong: Any) -> None:
    """Check that input of a wrong type or shape is refused and changes nothing."""
    learner = make_learner()
    learner.process(*stream)
    before = learner.to_bytes()
    target = (0.0,) if learner.model.supervised else ()
    with _raises("", LimpetError):
        learner.update(wrong, *target)
    with _raises("", LimpetError):
        learner.process(np.zeros((5, 9)), *(np.zeros(5) for _ in target))
    with _raises("y:", LimpetError):
        learner.update(_rows(stream)[0][0], *(() if target else (1.0,)))
    _require(learner.to_bytes() == before, "wrong input changes the learner")


def check_clone(make_learner: MakeLearner, stream: Stream) -> None:
    """Check that a clone has parameters but no state, and the state is read-only."""
    learner = make_learner()
    learner.process(*stream)
    clone = learner.clone()
    _require(repr(clone) == repr(learner), "parameters of the clone differ")
    _require(clone.n_seen == 0, "a clone has a state")
    clone.process(*stream)
    assert_same_bits(clone.state, learner.state, "state of the clone")
    _require(not learner.state.flags.writeable, "the state can be written to")


def assert_sound(learner: Learner) -> None:
    """Assert finite numbers, weights that sum to 1, positive definite covariances."""
    _require(bool(np.isfinite(learner.state).all()), "the state holds NaN or infinity")
    for name in learner.model.estimates:
        _require(bool(np.isfinite(learner.estimate(name)).all()), f"{name} holds NaN or infinity")
    if "weights" in learner.model.estimates:
        _require(bool((learner.weights > 0.0).all()), "a weight is not above 0")
        np.testing.assert_allclose(learner.weights.sum(), 1.0, rtol=1e-12)
    if "covariances" in learner.model.estimates:
        scale = np.sqrt(np.abs(np.diagonal(learner.covariances, axis1=1, axis2=2)))
        correlations = learner.covariances / scale[:, :, None] / scale[:, None, :]
        _require(bool((np.linalg.eigvalsh(correlations) > 0.0).all()), "a covariance is not positive definite")


def assert_same_bits(a: Any, b: Any, what: str = "") -> None:
    """Assert that two arrays of numbers have equal bits, NaN included."""
    x, y = (np.asarray(values, float).view(np.int64) for values in (a, b))
    np.testing.assert_array_equal(x, y, err_msg=what)


def _gaussian_stream(rng: np.random.Generator, n: int) -> Stream:
    points = rng.normal(size=n)
    points[rng.random(n) < 0.05] += 30.0
    return (points,)


def _rows(stream: Stream) -> list[tuple[Any, ...]]:
    return list(zip(*stream, strict=True))


def _cut(stream: Stream, start: int, stop: int) -> Stream:
    return tuple(part[start:stop] for part in stream)


def _alarm_rows(trace: Trace, kind: str) -> list[int]:
    return [alarm.row for alarm in trace.alarms if alarm.kind == kind]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


@contextmanager
def _raises(text: str, error_type: type[LimpetError] = InvalidInputError) -> Iterator[None]:
    try:
        yield
    except error_type as error:
        _require(text in str(error), f"{text!r} is missing in the error {str(error)!r}")
    else:
        raise AssertionError(f"no {error_type.__name__} was raised")
