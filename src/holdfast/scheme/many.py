"""Algorithm 1 on many streams at once: a matrix of states, a row a stream.

Streams stand side by side in the lanes of a register (`scheme.lanes`) and take their turns together, each with its own
next point; what one stream learns does not depend on which others stand beside it. The rows of `LANES` streams are
turned over into a block in which one number of all of them is one register, and turned back when they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.scheme.algorithm import LEARNT, PATIENCE, REJECTED, WARMUP, Turn, make_turn
from holdfast.scheme.columns import QUAD, columns, columns_to_rows, put_flags, rows_to_columns
from holdfast.scheme.compiling import compiled, kernel
from holdfast.scheme.functions import Functions
from holdfast.scheme.holding import hold_many
from holdfast.scheme.lanes import LANES, any_of, where
from holdfast.scheme.state import BAD, DROPPED, HEADER, HELD, RUN, SEEN, Vector


def padded_size(n: int) -> int:
    """The numbers that a row of so many numbers takes in a matrix of states."""
    return -(-n // QUAD) * QUAD


@dataclass(frozen=True, eq=False)
class Many:
    """The entry points for one kind of stream, compiled at their first call.

    A *turn list* says which points are whose: stream s, row streams[s] of the states, has the points
    order[begins[s]] … order[begins[s] + counts[s] − 1], in that order.
    Scores and fates are written where the points are.
    """

    block_size: int

    run: Callable[..., Any] | None
    """(states, streams, begins, counts, order, points, settings, block, places, in_order, scores, fates): all points
    are whole, all streams have started, counts do not increase.

    places: room for `LANES` whole numbers. in_order: whether each stream has one point, and they come in the order of
    the streams. None where the model cannot be run on lanes.
    """

    work_size: int

    run_in_turn: Callable[..., Any]
    """(states, streams, begins, counts, order, points, settings, work, scores, fates): any points, one stream after
    another, each of which has started."""

    first_special: Callable[..., Any]
    """(points) → the first point that cannot be used or misses a coordinate, −1 if there is none."""

    are_special: Callable[..., Any]
    """(begins, counts, order, points, special): marks the streams that have such a point."""

    hold: Callable[..., Any]
    """See `holding.hold_many`."""


@cache
def bind_many(functions: Functions, norm: str, rule: Callable[[float, Vector], float]) -> Many:
    """Algorithm 1 with these functions in place, for any number of streams."""
    turn = make_turn(functions, norm, rule)
    take, stamp = turn.take, turn.stamp

    def run_in_turn(states, streams, begins, counts, order, points, settings, work, scores, fates):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        for s in range(len(streams)):
            for j in range(counts[s]):
                at = order[begins[s] + j]
                scores[at], fates[at] = take(states[streams[s]], points[at], settings, work)

    size, run = (0, None) if functions.whole is None else side_by_side(functions.whole, norm, rule, 0)
    return Many(size, run, functions.work_size, compiled(run_in_turn, releases_gil=True), *look_out(turn))


def look_out(turn: Turn) -> tuple[Callable[..., Any], ...]:
    """`Many.first_special`, `Many.are_special` and `Many.hold`."""
    missing_coordinates, stamp = turn.missing_coordinates, turn.stamp

    def first_special(points):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        for i in range(len(points)):
            if missing_coordinates(points[i]) != 0:
                return i
        return -1

    def are_special(begins, counts, order, points, special):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        for s in range(len(begins)):
            special[s] = False
            for j in range(counts[s]):
                if missing_coordinates(points[order[begins[s] + j]]) != 0:
                    special[s] = True
                    break

    entry_points = (compiled(function, releases_gil=True) for function in (first_special, are_special))
    return *entry_points, hold_many(missing_coordinates)


@cache
def bind_grid(
    functions: Functions, norm: str, rule: Callable[[float, Vector], float], n_settings: int
) -> tuple[int, Callable[..., Any]] | None:
    """The numbers that a block has, and `Many.run` for streams each of which has settings of its own.

    settings: (streams, n_settings). scores, fates: (streams, points): several streams may have the same points.
    None where the model cannot be run on lanes.
    """
    return None if functions.whole is None else side_by_side(functions.whole, norm, rule, n_settings)


def side_by_side(
    functions: Functions, norm: str, rule: Callable[[float, Vector], float], n_settings: int
) -> tuple[int, Callable[..., Any]]:
    """The numbers that a block has, and `Many.run`; n_settings: of each stream, 0 if all have the same."""
    turn = make_turn(functions, norm, rule)
    judge, learn, stamp = turn.judge, turn.learn, turn.stamp
    width, theta_size = functions.width, functions.layout.size
    state_size = HEADER + theta_size
    row_size = padded_size(state_size)
    still = HELD  # from here on nothing changes once it has started …
    moving = still + (1 + functions.fixed) // QUAD * QUAD  # … up to here
    # The fields of a block, each of them `LANES` numbers.
    theta_at = HEADER
    kept_at = row_size  # theta before a turn that not all lanes learn from
    work_at = kept_at + theta_size
    point_at = work_at + functions.work_size
    score_at = point_at + width
    rejected_at = score_at + 1
    settings_at = rejected_at + 1
    size = (settings_at + n_settings) * LANES
    grid = n_settings > 0

    @kernel
    def fetch_row(states: Vector, stream: int, block: Vector, lane: int) -> None:
        for i in range(state_size):
            block[i * LANES + lane] = states[stream, i]

    @kernel
    def return_row(states: Vector, stream: int, block: Vector, lane: int) -> None:
        for i in range(state_size):
            states[stream, i] = block[i * LANES + lane]

    @kernel
    def take(cell: Any, y: Any, settings: Any) -> tuple[Any, Any]:
        theta, work = cell[theta_at:], cell[work_at:]
        seen = cell[SEEN] + 1.0
        t = seen - cell[BAD] + cell[HELD] + 1.0
        run = cell[RUN]
        score, rejected = judge(theta, t, run, y, settings, work, False)
        some = any_of(rejected)
        if some:
            for i in range(theta_size):
                cell[kept_at + i] = theta[i]
        learn(theta, t, y, settings, work, False)
        if some:
            for i in range(theta_size):
                theta[i] = where(rejected, cell[kept_at + i], theta[i])
        cell[SEEN] = seen
        lost = (settings[PATIENCE] > 0.0) & (run + 1.0 >= settings[PATIENCE])
        longer = where(lost, 0.0 - settings[WARMUP], run + 1.0)
        cell[RUN] = where(rejected, longer, where(run < 0.0, run + 1.0, 0.0))
        cell[DROPPED] += where(rejected, 1.0, 0.0)
        return score, rejected

    def run(states, streams, begins, counts, order, points, settings, block, places, in_order, scores, fates):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        cell = columns(block, 0)
        own = cell[settings_at:] if grid else settings
        for first in range(0, len(streams), LANES):
            active = min(LANES, len(streams) - first)
            if active == LANES:
                rows_to_columns(states, streams, first, block, 0, row_size, 0, row_size)
            else:
                for lane in range(active):
                    fetch_row(states, streams[first + lane], block, lane)
            if grid:
                for lane in range(active):
                    for i in range(n_settings):
                        block[(settings_at + i) * LANES + lane] = settings[first + lane, i]
            if in_order and active == LANES and width == 1 and not grid:  # points and answers stay where they are
                at = order[begins[first]]
                score, rejected = take(cell, columns(points, at), own)
                columns(scores, at)[0] = score
                put_flags(fates, at, rejected)
            else:
                for j in range(counts[first]):
                    while counts[first + active - 1] <= j:  # this one is done; its lane goes on with nothing
                        active -= 1
                        return_row(states, streams[first + active], block, active)
                    for lane in range(active):
                        places[lane] = order[begins[first + lane] + j]
                        for i in range(width):
                            block[(point_at + i) * LANES + lane] = points[places[lane], i]
                    score, rejected = take(cell, cell[point_at:], own)
                    cell[score_at], cell[rejected_at] = score, where(rejected, 1.0, 0.0)
                    for lane in range(active):
                        place = (first + lane, begins[first + lane] + j) if grid else places[lane]
                        scores[place] = block[score_at * LANES + lane]
                        fates[place] = REJECTED if block[rejected_at * LANES + lane] > 0.0 else LEARNT
            if active == LANES:
                columns_to_rows(states, streams, first, block, 0, row_size, 0, still)
                columns_to_rows(states, streams, first, block, 0, row_size, moving, row_size)
            else:
                for lane in range(active):
                    return_row(states, streams[first + lane], block, lane)

    return size, compiled(run, releases_gil=True)
