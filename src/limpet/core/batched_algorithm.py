"""Algorithm 1 on many streams: a matrix of states, one row per stream.

Streams are processed in the lanes of a register (`limpet._jit.simd`), each with its own next point; the result of one
stream does not depend on the streams in the other lanes. The rows of `LANES` streams are transposed into a block in
which each field of all of them is one register, and transposed back at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.simd import LANES, any_lane, select
from limpet._jit.simd_transpose import TILE_SIZE, columns_to_rows, lane_view, rows_to_columns, store_mask
from limpet.core.algorithm import N_PATIENCE, N_WARMUP, OUTCOME_ACCEPTED, OUTCOME_REJECTED, make_step_kernels
from limpet.core.model_kernels import ModelKernels
from limpet.core.start_buffer import make_buffer_kernel
from limpet.core.state import CONSECUTIVE_REJECTIONS, HEADER_SIZE, N_BUFFERED, N_INVALID, N_REJECTED, N_SEEN, Vector


def padded_row_size(n: int) -> int:
    """Return the padded length of a row in a matrix of states."""
    return -(-n // TILE_SIZE) * TILE_SIZE


class BatchedKernels(NamedTuple):
    """Entry points for one type of stream, compiled at their first call.

    A *schedule* assigns points to streams: stream s, row streams[s] of the states, has the points order[offsets[s]] …
    order[offsets[s] + counts[s] − 1], in this order. Scores and outcomes are written at the indices of the points.
    """

    block_size: int
    # (states, streams, offsets, counts, order, points, settings, block, point_indices, in_order, scores, outcomes): all
    # points are complete, all streams have started, counts do not increase. point_indices: a buffer of `LANES`
    # integers. in_order: whether each stream has one point, in the order of the streams. None if the model cannot run
    # on lanes.
    run_lanes: Callable[..., Any] | None
    work_size: int
    # (states, streams, offsets, counts, order, points, settings, work, scores, outcomes): any points, stream by stream;
    # all streams have started
    run_sequential: Callable[..., Any]
    first_incomplete: Callable[..., Any]  # (points) → the first invalid or incomplete point, −1 if all are complete
    # (offsets, counts, order, points, incomplete): mark the streams that have such a point
    mark_incomplete: Callable[..., Any]
    buffer_points: Callable[..., Any]  # See `start_buffer.make_buffer_kernel`


@cache
def make_batched_kernels(kernels: ModelKernels, norm: str, rule: Callable[[float, Vector], float]) -> BatchedKernels:
    """Return the entry points of Algorithm 1 for many streams."""
    step_kernels = make_step_kernels(kernels, norm, rule)
    process_point, count_missing = step_kernels.process_point, step_kernels.count_missing

    def run_sequential(states, streams, offsets, counts, order, points, settings, work, scores, outcomes):  # type: ignore[no-untyped-def]
        for s in range(len(streams)):
            for j in range(counts[s]):
                index = order[offsets[s] + j]
                scores[index], outcomes[index] = process_point(states[streams[s]], points[index], settings, work)

    def first_incomplete(points):  # type: ignore[no-untyped-def]
        for i in range(len(points)):
            if count_missing(points[i]) != 0:
                return i
        return -1

    def mark_incomplete(offsets, counts, order, points, incomplete):  # type: ignore[no-untyped-def]
        for s in range(len(offsets)):
            incomplete[s] = False
            for j in range(counts[s]):
                if count_missing(points[order[offsets[s] + j]]) != 0:
                    incomplete[s] = True
                    break

    block_size, run_lanes = make_lane_kernels(kernels, norm, rule) or (0, None)
    return BatchedKernels(
        block_size,
        run_lanes,
        kernels.work_size,
        jit_entry_point(run_sequential, releases_gil=True),
        jit_entry_point(first_incomplete, releases_gil=True),
        jit_entry_point(mark_incomplete, releases_gil=True),
        make_buffer_kernel(count_missing),
    )


@cache
def make_lane_kernels(
    model: ModelKernels, norm: str, rule: Callable[[float, Vector], float], n_settings: int = 0
) -> tuple[int, Callable[..., Any]] | None:
    """Return the block size and `run_lanes`, None if the model cannot run on lanes.

    Streams can have `n_settings` separate settings each, (streams, n_settings); several of them may have the same
    points, and scores and outcomes are (streams, points).
    """
    kernels = model.lane_kernels
    if kernels is None:
        return None
    step_kernels = make_step_kernels(kernels, norm, rule)
    evaluate_point, apply_update = step_kernels.evaluate_point, step_kernels.apply_update
    width, theta_size = kernels.width, kernels.layout.size
    state_size = HEADER_SIZE + theta_size
    row_size = padded_row_size(state_size)
    fixed_start = N_BUFFERED  # from here on, fields are constant after the start …
    fixed_end = fixed_start + (1 + kernels.n_fixed) // TILE_SIZE * TILE_SIZE  # … to here
    # Offsets of fields in a block, each of `LANES` numbers.
    theta_offset = HEADER_SIZE
    saved_theta_offset = row_size  # theta before a step that not all lanes accept
    work_offset = saved_theta_offset + theta_size
    point_offset = work_offset + kernels.work_size
    score_offset = point_offset + width
    rejected_offset = score_offset + 1
    settings_offset = rejected_offset + 1
    block_size = (settings_offset + n_settings) * LANES
    settings_per_stream = n_settings > 0

    @kernel
    def store_row(states: Vector, stream: int, block: Vector, lane: int) -> None:
        for i in range(state_size):
            states[stream, i] = block[i * LANES + lane]

    @kernel
    def process_lanes(fields: Any, y: Any, settings: Any) -> tuple[Any, Any]:
        theta, work = fields[theta_offset:], fields[work_offset:]
        seen = fields[N_SEEN] + 1.0
        t = seen - fields[N_INVALID] + fields[N_BUFFERED] + 1.0
        consecutive_rejections = fields[CONSECUTIVE_REJECTIONS]
        score, rejected = evaluate_point(theta, t, consecutive_rejections, y, settings, work, False)
        any_rejected = any_lane(rejected)
        if any_rejected:
            for i in range(theta_size):
                fields[saved_theta_offset + i] = theta[i]
        apply_update(theta, t, y, settings, work, False)
        if any_rejected:
            for i in range(theta_size):
                theta[i] = select(rejected, fields[saved_theta_offset + i], theta[i])
        fields[N_SEEN] = seen
        patience_exhausted = (settings[N_PATIENCE] > 0.0) & (consecutive_rejections + 1.0 >= settings[N_PATIENCE])
        count_if_rejected = select(patience_exhausted, 0.0 - settings[N_WARMUP], consecutive_rejections + 1.0)
        fields[CONSECUTIVE_REJECTIONS] = select(
            rejected, count_if_rejected, select(consecutive_rejections < 0.0, consecutive_rejections + 1.0, 0.0)
        )
        fields[N_REJECTED] += select(rejected, 1.0, 0.0)
        return score, rejected

    def run_lanes(  # type: ignore[no-untyped-def]
        states, streams, offsets, counts, order, points, settings, block, point_indices, in_order, scores, outcomes
    ):
        fields = lane_view(block, 0)
        lane_settings = fields[settings_offset:] if settings_per_stream else settings
        for first in range(0, len(streams), LANES):
            active = min(LANES, len(streams) - first)
            if active == LANES:
                rows_to_columns(states, streams, first, block, 0, row_size, 0, row_size)
            else:
                for lane in range(active):
                    for i in range(state_size):
                        block[i * LANES + lane] = states[streams[first + lane], i]
            if settings_per_stream:
                for lane in range(active):
                    for i in range(n_settings):
                        block[(settings_offset + i) * LANES + lane] = settings[first + lane, i]
            if in_order and active == LANES and width == 1 and not settings_per_stream:
                # points and results are contiguous
                first_index = order[offsets[first]]
                score, rejected = process_lanes(fields, lane_view(points, first_index), lane_settings)
                lane_view(scores, first_index)[0] = score
                store_mask(outcomes, first_index, rejected)
            else:
                for j in range(counts[first]):
                    while counts[first + active - 1] <= j:  # this stream is done; its lane remains unused
                        active -= 1
                        store_row(states, streams[first + active], block, active)
                    for lane in range(active):
                        point_indices[lane] = order[offsets[first + lane] + j]
                        for i in range(width):
                            block[(point_offset + i) * LANES + lane] = points[point_indices[lane], i]
                    score, rejected = process_lanes(fields, fields[point_offset:], lane_settings)
                    fields[score_offset], fields[rejected_offset] = score, select(rejected, 1.0, 0.0)
                    for lane in range(active):
                        row = first + lane
                        result_index = (row, offsets[row] + j) if settings_per_stream else point_indices[lane]
                        scores[result_index] = block[score_offset * LANES + lane]
                        is_rejected = block[rejected_offset * LANES + lane] > 0.0
                        outcomes[result_index] = OUTCOME_REJECTED if is_rejected else OUTCOME_ACCEPTED
            if active == LANES:
                columns_to_rows(states, streams, first, block, 0, row_size, 0, fixed_start)
                columns_to_rows(states, streams, first, block, 0, row_size, fixed_end, row_size)
            else:
                for lane in range(active):
                    store_row(states, streams[first + lane], block, lane)

    return block_size, jit_entry_point(run_lanes, releases_gil=True)
