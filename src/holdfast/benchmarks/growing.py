"""How the time a point grows with the streams, the points of a call, the components and the variables."""

from __future__ import annotations

from functools import partial

import numpy as np

from holdfast.benchmarks.crowd import SPARE, Kind, autopilot, in_turn, plain
from holdfast.benchmarks.figure import Figure
from holdfast.benchmarks.rivals import all_rivals, loop, numpy_ticks
from holdfast.benchmarks.scenarios import FloatArray
from holdfast.benchmarks.timing import Job, times_a_point

COMPONENTS, DIMS = (1, 2, 3, 5, 8), (1, 2, 3, 8, 16)
Jobs = dict[str, tuple[Job, int]]


def growth(quick: bool) -> list[Figure]:
    """Named "what grows: what is timed: how much of it there is"."""
    largest, rounds = (3, 2) if quick else (6, 5)
    components, dims = (COMPONENTS[:2], DIMS[:1]) if quick else (COMPONENTS, DIMS)
    figures = times_a_point(with_streams(largest) | with_points(largest), rounds)
    n = 10 ** min(largest, 5)
    jobs: Jobs = {}
    for K in components:
        jobs |= {f"components K: {name}: {K}": job for name, job in ways(plain(K, 1), n).items()}
    for d in dims:
        jobs |= {f"variables d: {name}: {d}": job for name, job in ways(plain(2, d), n).items()}
    return figures + times_a_point(jobs, rounds)


def with_streams(largest: int) -> Jobs:
    """A point for each of 1 … 10^largest streams."""
    adwin = all_rivals()[0]
    assert "ADWIN" in adwin.name
    jobs: Jobs = {}
    for n in (10**power for power in range(largest + 1)):
        jobs[f"streams: fleet, K=2: {n}"] = plain().ticks(n)
        jobs[f"streams: EM in numpy: {n}"] = numpy_ticks(n)
        if n <= 100_000:
            jobs[f"streams: fleet, autopilot: {n}"] = autopilot().ticks(n)
        if n <= 10_000:
            jobs[f"streams: dict of ADWIN: {n}"] = adwin.dict_of(n)
    return jobs


def with_points(largest: int) -> Jobs:
    """Calls with 1 … 10^largest points, for one stream and for streams by chance, which have to be looked up."""
    kind, n_keys = plain(), 10 ** min(largest, 5)
    fleet = kind.fleet(range(n_keys))
    keys = np.random.default_rng(0).integers(n_keys, size=10**largest + SPARE)
    rows = np.column_stack([kind.points(len(keys))[:, 0], keys])

    def learn(own: FloatArray) -> None:
        fleet.update(own[:, 1].astype(np.int64), own[:, 0])

    calm = autopilot().points(len(keys))
    jobs: Jobs = {}
    for n in (10**power for power in range(largest + 1)):
        jobs[f"points a call: fleet, K=2: {n}"] = in_turn(learn, rows, n)
        jobs[f"points a call: one stream, K=2: {n}"] = in_turn(kind.learner().process, rows[:, :1], n)
        jobs[f"points a call: one stream, autopilot: {n}"] = in_turn(autopilot().learner().process, calm, n)
    return jobs


def ways(kind: Kind, n_streams: int) -> Jobs:
    """`update(x)`, `process` and a fleet."""
    rows = kind.points(20_000)
    points = rows[:2000, 0].tolist() if kind.dim == 1 else list(rows[:2000])
    return {
        "fleet": kind.ticks(n_streams),
        "process": in_turn(kind.learner().process, rows, len(rows)),
        "update(x)": (partial(loop, kind.learner().update, points), len(points)),
    }
