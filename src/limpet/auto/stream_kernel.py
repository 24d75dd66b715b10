"""Automatic learner with its decisions, compiled for one type of stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.simd_transpose import prefetch_row
from limpet.auto.reinitialization import n_recent, recent_points
from limpet.auto.step_kernel import N_SETTINGS, AutoKernels, make_auto_kernels
from limpet.core.algorithm import (
    OUTCOME_ACCEPTED,
    OUTCOME_ANOMALY,
    OUTCOME_CHANGE,
    OUTCOME_INVALID,
    OUTCOME_NEEDS_REINIT,
    OUTCOME_REJECTED,
    make_first_invalid,
    make_validity_kernel,
)
from limpet.core.memory_profile import FULL, MemoryProfile, profile_for
from limpet.core.model_kernels import accept_all
from limpet.core.start_buffer import make_buffer_kernel
from limpet.core.state import (
    CONSECUTIVE_REJECTIONS,
    HEADER_SIZE,
    N_INVALID,
    N_REJECTED,
    N_SEEN,
    Layout,
    Vector,
    n_float64_slots,
)
from limpet.detection import ChangeDetector, make_change_detector
from limpet.detection.anomaly_detector import is_anomaly, make_anomaly_detector, starts_run
from limpet.detection.layout import channel_layout

# settings = [ those of the step | far | squared distance beyond which a point can be an anomaly | change threshold ]
FAR_INDEX, ANOMALY_GAMMA_SQUARED, CHANGE_THRESHOLD = N_SETTINGS, N_SETTINGS + 1, N_SETTINGS + 2

# The results of a point. DISTANCE: from the estimate, in sd; DOMINANT_VARIABLE: at the first of consecutive anomalies
# ±(1 + the variable that is farthest out), else 0.
SCORE, CHANGE_SCORE, P_VALUE, DISTANCE, DOMINANT_VARIABLE, N_RESULTS = 0, 1, 2, 3, 4, 5


class AutoStreamKernels(NamedTuple):
    """Entry points for one type of stream, compiled at their first call."""

    profile: MemoryProfile
    auto: AutoKernels
    detector: ChangeDetector
    layout: Layout
    work_size: int
    # (state, rows, settings, work, results, outcomes, estimates, is_buffered) → number of rows processed until Python
    # must handle an event: a change, or a re-initialization. is_buffered: the rows are those of the initialization,
    # from which only detectors and scorers still learn.
    run: Callable[..., Any]
    # (states, streams, offsets, counts, order, points, settings, work, results, outcomes, done, is_buffered): the same
    # for many streams sequentially; see `core.batched_algorithm.BatchedKernels` for the schedule. done[s]: points of
    # stream s processed until Python must handle an event. Buffered points have no results.
    run_batch: Callable[..., Any]
    buffer_points: Callable[..., Any]  # See `core.start_buffer.make_buffer_kernel`
    # (state, rows, settings, work, scores, p_values): of each row as the next one, without learning
    score: Callable[..., Any]
    score_isolated: Callable[..., Any]  # The same for rows with unknown predecessors
    # (state, rows, settings, work, p_values, outcomes): the outcome of each row, given its p-value. For a copy of the
    # state, in which the ensemble is updated.
    classify_rows: Callable[..., Any]
    # (state, settings) → the log-evidence for a change minus the limit at which an alarm is raised
    log_evidence_margin: Callable[..., Any]
    first_invalid: Callable[..., Any]  # (rows) → the first invalid row, −1 if all are valid
    # (y) → number of NaN coordinates, −1 for an invalid point; for use from Python
    count_missing: Callable[[Vector], int]
    # (theta) → the points of a re-initialization, oldest first, NaN where missing; for use from Python
    reinit_points: Callable[[Vector], Vector]
    # (theta, i, shift): move the origin of variable i; for use from Python
    shift_origin: Callable[[Vector, int, float], None]


@cache
def make_auto_stream_kernels(
    covariance: str, K: int, d: int, lags: int = 0, season: int = 0, profile: MemoryProfile = FULL
) -> AutoStreamKernels:
    """Return the entry points for streams of d variables and K components."""
    profile = profile_for(profile, K)
    # The change detector stores the latest points as well, if there are enough of them.
    shares_ring = d == 1 and not lags and profile.ring_points <= channel_layout(profile).ring_length
    auto = make_auto_kernels(covariance, K, d, lags, season, not shares_ring, profile)
    anomaly_detector = make_anomaly_detector(profile)
    detector = make_change_detector(d, lags == 0, True, profile, auto.location_scale)
    detection_fields = {
        "p_value_counts": (anomaly_detector.tally_size,),
        "surprise_histogram": (anomaly_detector.tree_size,),
        "change_detector": (detector.state_size,),
        "in_anomaly": (1,),
    }
    layout = Layout({**auto.layout.fields, **detection_fields})
    reference, scale, float64_slots = layout.offset("reference"), layout.offset("scale"), profile.float64_slots(d)
    tally_offset, tree_offset, detector_offset, in_anomaly_offset = map(layout.offset, detection_fields)
    theta_end = HEADER_SIZE + n_float64_slots(layout.size, profile.dtype)
    dtype, count_dtype, is_full = profile.dtype, profile.count_dtype, profile.is_full
    observe_surprise, count_surprise = anomaly_detector.observe, anomaly_detector.count_surprise
    p_value, normalized_evidence = anomaly_detector.p_value, detector.normalized_evidence
    recentering_offset, shift_auto_origin = auto.recentering_offset, auto.shift_origin
    score_point, step, observe_only, tick = auto.score, auto.step, auto.observe_only, auto.tick
    compute_means, dominant_variable, check_rejection = auto.compute_means, auto.dominant_variable, auto.check_rejection
    observe, skip_detector_point, shift_detector_origin = detector.observe, detector.tick, detector.shift_origin
    detector_evidence_margin, detector_work_offset = detector.log_evidence_margin, auto.work_size
    detector_input_offset = auto.residual_offset if lags else auto.point_offset
    work_size = detector_work_offset + detector.work_size
    count_missing = make_validity_kernel(d, accept_all, handles_missing=True)

    @kernel
    def score_and_update(
        state: Vector, y: Vector, settings: Vector, work: Vector, results: Vector, n_missing: int
    ) -> int:
        """Process a valid point: write its results, return its outcome."""
        theta = state[HEADER_SIZE:theta_end].view(dtype)
        tally = theta[tally_offset:tree_offset].view(np.int32)
        tree = theta[tree_offset:detector_offset].view(count_dtype)
        state[N_SEEN] += 1.0
        score, change_score, surprise, squared_distance, rejected, needs_reinit = step(
            theta, y, settings, work, n_missing
        )
        p, anomalous = observe_surprise(
            tally, tree, surprise, squared_distance, settings[FAR_INDEX], settings[ANOMALY_GAMMA_SQUARED]
        )
        results[SCORE], results[CHANGE_SCORE], results[P_VALUE] = score, change_score, p
        results[DISTANCE], results[DOMINANT_VARIABLE] = math.sqrt(squared_distance), 0.0
        outcome = OUTCOME_ACCEPTED
        if rejected:
            state[CONSECUTIVE_REJECTIONS] += 1.0
            state[N_REJECTED] += 1.0
            outcome = OUTCOME_REJECTED
        else:
            state[CONSECUTIVE_REJECTIONS] = 0.0
        if anomalous:
            outcome |= OUTCOME_ANOMALY
        if starts_run(theta, in_anomaly_offset, anomalous):
            results[DOMINANT_VARIABLE] = dominant_variable(theta, work)
        if needs_reinit:
            outcome |= OUTCOME_NEEDS_REINIT
        return outcome

    @kernel
    def write_estimate(theta: Vector, out: Vector) -> None:
        compute_means(theta, out)
        origin = theta[reference : reference + float64_slots].view(np.float64)
        unit = theta[scale : scale + float64_slots].view(np.float64)
        for j in range(K * d):
            out[j] = origin[j % d] + unit[j % d] * out[j]

    @kernel
    def shift_origin(theta: Vector, i: int, shift: float) -> None:
        shift_auto_origin(theta, i, shift)
        shift_detector_origin(theta, detector_offset, i, shift)

    @kernel
    def finish_compact(theta: Vector, settings: Vector, work: Vector, results: Vector) -> None:
        """Move the origin if necessary, and compute the change score."""
        for i in range(d):
            shift = recentering_offset(theta, i, work[detector_work_offset:])
            if shift != 0.0:
                shift_origin(theta, i, shift)
        results[CHANGE_SCORE] = normalized_evidence(theta, detector_offset, settings[CHANGE_THRESHOLD])

    @kernel
    def observe_start_point(theta: Vector, y: Vector, settings: Vector, work: Vector, n_missing: int) -> None:
        """Count the surprise at a point of the initialization."""
        _, surprise, _, _ = score_point(theta, y, settings, work, n_missing)
        tally = theta[tally_offset:tree_offset].view(np.int32)
        tree = theta[tree_offset:detector_offset].view(count_dtype)
        count_surprise(tally, tree, surprise, 1.0, 0.0, 0.0)
        observe_only(theta, work)

    @kernel
    def process_point(
        state: Vector, y: Vector, settings: Vector, threshold: float, work: Vector, results: Vector, is_buffered: bool
    ) -> int:
        """Process any row with a threshold read once for all rows; return its outcome."""
        theta = state[HEADER_SIZE:theta_end].view(dtype)
        n_missing = count_missing(y)
        if n_missing < 0:
            tick(theta)
            skip_detector_point(theta, detector_offset)
            if not is_buffered:
                state[N_SEEN] += 1.0
                state[N_INVALID] += 1.0
                theta[in_anomaly_offset] = 0.0
                for j in range(N_RESULTS):
                    results[j] = math.nan
            return OUTCOME_INVALID
        outcome = OUTCOME_INVALID
        if is_buffered:
            observe_start_point(theta, y, settings, work, n_missing)
        else:
            outcome = score_and_update(state, y, settings, work, results, n_missing)
        if observe(theta, detector_offset, work, detector_input_offset, threshold, work, detector_work_offset) > 0.0:
            outcome |= OUTCOME_CHANGE
        if not is_full and not is_buffered:
            finish_compact(theta, settings, work, results)
        return outcome

    def run(state, rows, settings, work, results, outcomes, estimates, is_buffered):  # type: ignore[no-untyped-def]
        if len(state) < theta_end or len(work) < work_size:  # never true; it gives the compiler the bounds of all parts
            return 0
        work, threshold = work[:work_size], settings[CHANGE_THRESHOLD]
        for i in range(len(rows)):
            result = results[0 if is_buffered else i]
            outcome = process_point(state, rows[i], settings, threshold, work, result, is_buffered)
            if is_buffered:
                continue
            outcomes[i] = outcome
            if len(estimates) > 0:
                write_estimate(state[HEADER_SIZE:theta_end].view(dtype), estimates[i])
            if outcome >= OUTCOME_CHANGE:
                return i + 1
        return len(rows)

    def run_batch(  # type: ignore[no-untyped-def]
        states, streams, offsets, counts, order, points, settings, work, results, outcomes, done, is_buffered
    ):
        if states.shape[1] < theta_end or len(work) < work_size:  # as above
            return
        work, threshold = work[:work_size], settings[CHANGE_THRESHOLD]
        for s in range(len(streams)):
            if s + 1 < len(streams):
                prefetch_row(states, streams[s + 1])
            state, outcome, j = states[streams[s]], OUTCOME_ACCEPTED, 0
            while j < counts[s] and outcome < OUTCOME_CHANGE:
                index = order[offsets[s] + j]
                result_index = 0 if is_buffered else index
                result = results[result_index]
                outcome = process_point(state, points[index], settings, threshold, work, result, is_buffered)
                outcomes[result_index] = outcome
                outcome = OUTCOME_ACCEPTED if is_buffered else outcome
                j += 1
            done[s] = j

    def make_scorer(score_point: Callable[..., Any]) -> Callable[..., Any]:
        def score(state, rows, settings, work, scores, p_values):  # type: ignore[no-untyped-def]
            theta = state[HEADER_SIZE:theta_end].view(dtype)
            tally = theta[tally_offset:tree_offset].view(np.int32)
            tree = theta[tree_offset:detector_offset].view(count_dtype)
            for i in range(len(rows)):
                n_missing = count_missing(rows[i])
                scores[i], p_values[i] = math.nan, math.nan
                if n_missing >= 0:
                    scores[i], surprise, _, _ = score_point(theta, rows[i], settings, work, n_missing)
                    p_values[i] = p_value(tally, tree, surprise, settings[FAR_INDEX])

        return jit_entry_point(score, releases_gil=True)

    def classify_rows(state, rows, settings, work, p_values, outcomes):  # type: ignore[no-untyped-def]
        theta = state[HEADER_SIZE:theta_end].view(dtype)
        for i in range(len(rows)):
            n_missing = count_missing(rows[i])
            outcomes[i] = OUTCOME_INVALID
            if n_missing >= 0:
                rejected, squared_distance = check_rejection(theta, rows[i], settings, work, n_missing)
                outcomes[i] = OUTCOME_REJECTED if rejected else OUTCOME_ACCEPTED
                if is_anomaly(p_values[i], squared_distance, settings[FAR_INDEX], settings[ANOMALY_GAMMA_SQUARED]):
                    outcomes[i] |= OUTCOME_ANOMALY

    def log_evidence_margin(state, settings):  # type: ignore[no-untyped-def]
        theta = state[HEADER_SIZE:theta_end].view(dtype)
        return detector_evidence_margin(theta, detector_offset, settings[CHANGE_THRESHOLD])

    def reinit_points(theta: Vector) -> Vector:
        n = n_recent(layout, theta, profile)
        if shares_ring:
            return detector.recent_values(layout.view(theta, "change_detector"), n)[:, None]
        return recent_points(layout, theta, n, profile)

    return AutoStreamKernels(
        profile,
        auto,
        detector,
        layout,
        work_size,
        jit_entry_point(run, releases_gil=True),
        jit_entry_point(run_batch, releases_gil=True),
        make_buffer_kernel(count_missing),
        make_scorer(auto.score),
        make_scorer(auto.score_isolated),
        jit_entry_point(classify_rows, releases_gil=True),
        jit_entry_point(log_evidence_margin),
        make_first_invalid(count_missing),
        count_missing,
        reinit_points,
        shift_origin,
    )
