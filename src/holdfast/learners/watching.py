"""The autopilot with its decisions, compiled for one kind of stream; for the plain scheme see `scheme.algorithm`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from holdfast.alarms import ChangeDetector, change_detector
from holdfast.alarms import layout as alarms
from holdfast.alarms.calibration import CALLED, calibration_functions
from holdfast.autopilot.pilot import SETTINGS, Pilot, make_pilot
from holdfast.autopilot.rescue import how_many, latest
from holdfast.autopilot.sizes import FULL, Sizes, enough_for
from holdfast.scheme.algorithm import ANOMALOUS, CHANGED, LARGEST, LEARNT, LOOK, REJECTED, UNUSABLE
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.holding import hold_many
from holdfast.scheme.prefetching import ask_for_row
from holdfast.scheme.state import BAD, DROPPED, HEADER, RUN, SEEN, Layout, Vector, places_of

# settings = [ the pilot's | far | the squared distance beyond which a point can be an anomaly | change threshold ]
FAR, ODD_SQUARED, THRESHOLD = SETTINGS, SETTINGS + 1, SETTINGS + 2

# The results of a point. DISTANCE: from the estimate, in standard deviations; CARRIER: where an anomaly begins,
# ±(1 + the variable that is furthest out), else 0.
SCORE, CHANGE_SCORE, P_VALUE, DISTANCE, CARRIER, RESULTS = 0, 1, 2, 3, 4, 5
MASKED = 0.1  # of far: a surprise that is rarer than this counts as one that is just so


@dataclass(frozen=True, eq=False)
class Watch:
    """The entry points for one kind of stream, compiled at their first call."""

    sizes: Sizes
    pilot: Pilot
    detector: ChangeDetector
    layout: Layout
    work_size: int

    run: Callable[..., Any]
    """(state, rows, settings, work, results, fates, estimates, held) → how many rows it took until Python has to step
    in.

    held: these are the points of the start, which has been made of them; what else there is to learn from them is
    learnt.
    """

    run_many: Callable[..., Any]
    """(states, streams, begins, counts, order, points, settings, work, results, fates, done, held): the same for many
    streams one after another; see `scheme.many.Many` for who has which points. Stream s has had done[s] of them when
    Python has to step in, or all. Points that are held have no answers."""

    hold: Callable[..., Any]
    """See `scheme.holding.hold_many`."""

    score: Callable[..., Any]
    """(state, rows, settings, work, scores, p_values): of each row, if it came next; learns nothing."""

    score_alone: Callable[..., Any]
    """The same for rows of which it is not known what came before them."""

    judge: Callable[..., Any]
    """(state, rows, settings, work, p_values, fates): what would become of each row, given its p-value. For a copy of
    the state: the bank takes note of the rows."""

    certainty: Callable[..., Any]
    """(state, settings) → the logarithm of the evidence for a change, less that at which an alarm is raised."""

    first_unusable: Callable[..., Any]
    """(rows) → the first row that cannot be used, −1 if there is none."""

    missing_coordinates: Callable[[Vector], int]
    """(y) → how many coordinates are NaN, −1 for a point that cannot be used; for use from Python."""

    latest_points: Callable[[Vector], Vector]
    """(theta) → the points that the rescue looks at, oldest first, NaN where one is missing; for use from Python."""

    move: Callable[[Vector, int, float], None]
    """(theta, i, by): the origin of the frame goes there, in variable i; for use from Python."""


@cache
def make_watch(covariance: str, K: int, d: int, lags: int = 0, season: int = 0, sizes: Sizes = FULL) -> Watch:
    """The whole watch over streams of d variables, for K components, with so long a memory."""
    sizes = enough_for(sizes, K)
    shared = d == 1 and not lags and sizes.ring <= alarms.places_of(sizes).ring_length  # the ring of the detector's
    pilot, calibration = make_pilot(covariance, K, d, lags, season, not shared, sizes), calibration_functions(sizes)
    detector = change_detector(d, lags == 0, True, sizes, pilot.frame)
    layout = Layout(
        {
            **pilot.layout.fields,
            "called": (calibration.tally_size,),
            "surprises": (calibration.tree_size,),
            "changes": (detector.size,),
            "in_anomaly": (1,),
        }
    )
    reference, scale, exact = layout.at("reference"), layout.at("scale"), sizes.places_for_exact(d)
    called, surprises, changes, in_anomaly = map(layout.at, ("called", "surprises", "changes", "in_anomaly"))
    theta_end = HEADER + places_of(layout.size, sizes.number)
    number, count_type, keep_small = sizes.number, sizes.count, calibration.keep_small
    p_value, count_surprise, suspicion = calibration.p_value, calibration.count_surprise, detector.suspicion
    astray, move_pilot, move_detector = pilot.moving.astray, pilot.moving.move, detector.move
    detector_work = pilot.work_size
    work_size = detector_work + detector.work_size
    assess, step, pass_by, means = pilot.assess, pilot.step, pilot.pass_by, pilot.means
    tick, carrier, observe, pass_time = pilot.tick, pilot.carrier, detector.observe, detector.tick
    rejects, detector_certainty = pilot.rejects, detector.certainty
    watched_at = pilot.residual_at if lags else pilot.point_at  # what the detector of changes is shown
    pieces = [assess, step, pass_by, tick, means, carrier, observe, pass_time, p_value, count_surprise]
    stamp = fingerprint(
        [*pieces, keep_small, suspicion, astray, move_pilot, move_detector, rejects, pilot.assess_alone]
    )

    @kernel
    def missing_coordinates(y: Vector) -> int:
        missing = 0
        for i in range(d):
            if abs(y[i]) > LARGEST:
                return -1
            if math.isnan(y[i]):
                missing += 1
        return -1 if missing == d else missing

    @kernel
    def watch(state: Vector, y: Vector, settings: Vector, work: Vector, results: Vector, missing: int) -> int:
        """A point that can be used: its results, and what became of it."""
        theta = state[HEADER:theta_end].view(number)
        tally, tree = theta[called:surprises].view(np.int32), theta[surprises:changes].view(count_type)
        state[SEEN] += 1.0
        score, change_score, surprise, nearest, rejected, look = step(theta, y, settings, work, missing)
        p = p_value(tally, tree, surprise, settings[FAR])
        count_surprise(tally, tree, surprise, p, MASKED * settings[FAR], settings[FAR])
        keep_small(tally, tree)
        results[SCORE], results[CHANGE_SCORE], results[P_VALUE] = score, change_score, p
        results[DISTANCE], results[CARRIER] = math.sqrt(nearest), 0.0
        fate = LEARNT
        if rejected:
            state[RUN] += 1.0
            state[DROPPED] += 1.0
            fate = REJECTED
        else:
            state[RUN] = 0.0
        if p <= settings[FAR] and nearest > settings[ODD_SQUARED]:
            fate |= ANOMALOUS
            if theta[in_anomaly] == 0.0:
                results[CARRIER] = carrier(theta, work)
            theta[in_anomaly] = 1.0
            tally[CALLED] += 1
        else:
            theta[in_anomaly] = 0.0
        if look:
            fate |= LOOK
        return fate

    @kernel
    def estimate(theta: Vector, out: Vector) -> None:
        """The means, in the units of the data."""
        means(theta, out)
        origin = theta[reference : reference + exact].view(np.float64)
        unit = theta[scale : scale + exact].view(np.float64)
        for j in range(K * d):
            out[j] = origin[j % d] + unit[j % d] * out[j]

    @kernel
    def move(theta: Vector, i: int, by: float) -> None:
        """The origin of variable i goes there."""
        move_pilot(theta, i, by)
        move_detector(theta, changes, i, by)

    @kernel
    def follow(theta: Vector, settings: Vector, work: Vector, results: Vector) -> None:
        """What a lean stream does in the end: its origin goes along, and its change score is that of the detector."""
        for i in range(d):
            by = astray(theta, i, work[detector_work:])
            if by != 0.0:
                move(theta, i, by)
        results[CHANGE_SCORE] = suspicion(theta, changes, settings[THRESHOLD])

    @kernel
    def stay(theta: Vector, settings: Vector, work: Vector, results: Vector) -> None:
        pass

    finish = stay if sizes.whole else follow

    @kernel
    def take_note(theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int) -> None:
        """A point of the start: how surprising it is now, for the p-values."""
        _, surprise = assess(theta, y, settings, work, missing)
        tally, tree = theta[called:surprises].view(np.int32), theta[surprises:changes].view(count_type)
        count_surprise(tally, tree, surprise, 1.0, 0.0, 0.0)
        pass_by(theta, work)

    @kernel
    def take(
        state: Vector, y: Vector, settings: Vector, threshold: float, work: Vector, results: Vector, held: bool
    ) -> int:
        """One row, whatever it is: what became of it. threshold: that of the settings, read once for all rows."""
        theta = state[HEADER:theta_end].view(number)
        missing = missing_coordinates(y)
        if missing < 0:
            tick(theta)
            pass_time(theta, changes)
            if not held:
                state[SEEN] += 1.0
                state[BAD] += 1.0
                theta[in_anomaly] = 0.0
                for j in range(RESULTS):
                    results[j] = math.nan
            return UNUSABLE
        fate = UNUSABLE
        if held:
            take_note(theta, y, settings, work, missing)
        else:
            fate = watch(state, y, settings, work, results, missing)
        if observe(theta, changes, work, watched_at, threshold, work, detector_work) > 0.0:
            fate |= CHANGED
        if not held:
            finish(theta, settings, work, results)
        return fate

    def run(state, rows, settings, work, results, fates, estimates, held):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        if len(state) < theta_end or len(work) < work_size:  # never; but it tells the compiler where every part ends
            return 0
        work, threshold = work[:work_size], settings[THRESHOLD]
        for i in range(len(rows)):
            fate = take(state, rows[i], settings, threshold, work, results[0 if held else i], held)
            if held:
                continue
            fates[i] = fate
            if len(estimates) > 0:
                estimate(state[HEADER:theta_end].view(number), estimates[i])
            if fate >= CHANGED:
                return i + 1
        return len(rows)

    def run_many(states, streams, begins, counts, order, points, settings, work, results, fates, done, held):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        if states.shape[1] < theta_end or len(work) < work_size:  # as above
            return
        work, threshold = work[:work_size], settings[THRESHOLD]
        for s in range(len(streams)):
            if s + 1 < len(streams):
                ask_for_row(states, streams[s + 1])
            state, fate, j = states[streams[s]], LEARNT, 0
            while j < counts[s] and fate < CHANGED:
                at = order[begins[s] + j]
                answer = 0 if held else at
                fate = take(state, points[at], settings, threshold, work, results[answer], held)
                fates[answer] = fate
                fate = LEARNT if held else fate
                j += 1
            done[s] = j

    def scored_by(assess: Callable[..., Any]) -> Callable[..., Any]:
        def score(state, rows, settings, work, scores, p_values):  # type: ignore[no-untyped-def]
            stamp  # noqa: B018
            theta = state[HEADER:theta_end].view(number)
            tally, tree = theta[called:surprises].view(np.int32), theta[surprises:changes].view(count_type)
            for i in range(len(rows)):
                missing = missing_coordinates(rows[i])
                scores[i], p_values[i] = math.nan, math.nan
                if missing >= 0:
                    scores[i], surprise = assess(theta, rows[i], settings, work, missing)
                    p_values[i] = p_value(tally, tree, surprise, settings[FAR])

        return compiled(score, releases_gil=True)

    def judge(state, rows, settings, work, p_values, fates):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        theta = state[HEADER:theta_end].view(number)
        for i in range(len(rows)):
            missing = missing_coordinates(rows[i])
            fates[i] = UNUSABLE
            if missing >= 0:
                rejected, nearest = rejects(theta, rows[i], settings, work, missing)
                fates[i] = REJECTED if rejected else LEARNT
                if p_values[i] <= settings[FAR] and nearest > settings[ODD_SQUARED]:
                    fates[i] |= ANOMALOUS

    def certainty(state, settings):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        return detector_certainty(state[HEADER:theta_end].view(number), changes, settings[THRESHOLD])

    def first_unusable(rows):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        for i in range(len(rows)):
            if missing_coordinates(rows[i]) < 0:
                return i
        return -1

    def latest_points(theta: Vector) -> Vector:
        n = how_many(layout, theta, sizes)
        if shared:
            return detector.latest(layout.view(theta, "changes"), n)[:, None]
        return latest(layout, theta, n, sizes)

    return Watch(
        sizes,
        pilot,
        detector,
        layout,
        work_size,
        compiled(run, releases_gil=True),
        compiled(run_many, releases_gil=True),
        hold_many(missing_coordinates),
        scored_by(assess),
        scored_by(pilot.assess_alone),
        compiled(judge, releases_gil=True),
        compiled(certainty),
        compiled(first_unusable),
        missing_coordinates,
        latest_points,
        move,
    )
