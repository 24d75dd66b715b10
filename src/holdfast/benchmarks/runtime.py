"""Time a point by kind of stream and by way of calling, beside what else people use; and how it grows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.benchmarks.crowd import Kind, autopilots, plain
from holdfast.benchmarks.figure import Figure, power_of_ten
from holdfast.benchmarks.growing import growth
from holdfast.benchmarks.rivals import Rival, all_rivals, loop, numpy_ticks
from holdfast.benchmarks.timing import Job, times_a_point
from holdfast.errors import HoldfastWarning
from holdfast.threads import n_threads

TITLE = (
    f"update and process on one core, fleets on {n_threads()}; calm Gaussian streams, after the start; best of several"
)
CASES = ((1, 1), (2, 1), (5, 1), (2, 3), (2, 8), (5, 8))  # components, coordinates
SIZES = (1_000, 100_000, 1_000_000)
MEMORY = 4e9  # bytes, the most that the states of one fleet take here
TOGETHER = 100_000  # streams, up to which the fleets of all kinds are there at once and timed in turn
NUMPY = "online EM in numpy, K=2, all streams at once"


def measure(quick: bool) -> list[Figure]:
    """The table, then how cost grows."""
    short, rounds = (20, 3) if quick else (1, 5)
    kinds = {f"K={K}, d={d}": plain(K, d) for K, d in (CASES[:2] if quick else CASES)} | autopilots()
    rivals, sizes = all_rivals(), [n // short for n in SIZES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)  # of a thousand learners one may lose a component
        figures = [Figure(f"{name}: state", kind.bytes, "bytes a stream") for name, kind in kinds.items()]
        figures += one_stream(kinds, rivals, short, rounds)
        figures += fleets(kinds, rivals, sizes, short, 3)
        return figures + growth(quick)


def one_stream(kinds: Mapping[str, Kind], rivals: Sequence[Rival], short: int, rounds: int) -> list[Figure]:
    """`update(x)` and `process` of every kind, and the rivals, in turn. short: how many times fewer points."""
    jobs: dict[str, tuple[Job, int]] = {}
    for name, kind in kinds.items():
        rows = kind.points(100_000 // short)
        some = rows[: len(rows) // 10]
        points = some[:, 0].tolist() if kind.dim == 1 else list(some)
        jobs[f"{name}: update(x)"] = partial(loop, kind.learner().update, points), len(points)
        jobs[f"{name}: process"] = partial(kind.learner().process, rows), len(rows)
    jobs |= {f"{rival.name}: one stream": rival.one(short) for rival in rivals}
    return times_a_point(jobs, rounds)


def fleets(
    kinds: Mapping[str, Kind], rivals: Sequence[Rival], sizes: Sequence[int], short: int, rounds: int
) -> list[Figure]:
    """A point for each of many streams: fleets, dicts of rivals, and numpy over all streams."""
    jobs = {f"{rival.name}: a dict of {power_of_ten(rival.size(short))}": rival.many(short) for rival in rivals}
    figures = []
    for n in sizes:
        ticks = {name: kind.ticks for name, kind in kinds.items() if n * kind.bytes <= MEMORY} | {NUMPY: numpy_ticks}
        for name, make in ticks.items():
            job = {f"{name}: fleet of {power_of_ten(n)}": make(n)}
            if n <= TOGETHER:
                jobs |= job
            else:
                figures += times_a_point(job, rounds)
    return times_a_point(jobs, rounds) + figures
