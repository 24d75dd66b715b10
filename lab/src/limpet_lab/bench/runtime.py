"""Time per point by kind of stream and by way of calling, beside what else people use; and how it grows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from limpet._parallel import n_threads
from limpet.exceptions import LimpetWarning
from limpet_lab.baselines.rivals import Rival, all_rivals, loop, numpy_ticks
from limpet_lab.bench._measurement import Figure, power_of_ten
from limpet_lab.bench._scenarios import FloatArray
from limpet_lab.bench._timing import Job, times_a_point
from limpet_lab.bench._workloads import SPARE, Kind, cycling_job, detector_kind, detector_kinds, plain

# How the time per point grows with the streams, the points of a call, the components and the variables.

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
        jobs |= {f"components K: {name}: {K}": job for name, job in jobs_of_kind(plain(K, 1), n).items()}
    for d in dims:
        jobs |= {f"variables d: {name}: {d}": job for name, job in jobs_of_kind(plain(2, d), n).items()}
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
            jobs[f"streams: fleet, Detector: {n}"] = detector_kind().ticks(n)
        if n <= 10_000:
            jobs[f"streams: dict of ADWIN: {n}"] = adwin.dict_of(n)
    return jobs


def with_points(largest: int) -> Jobs:
    """Calls with 1 … 10^largest points, for one stream and for streams by chance, which have to be looked up."""
    kind, n_keys = plain(), 10 ** min(largest, 5)
    fleet = kind.fleet(range(n_keys))
    keys = np.random.default_rng(0).integers(n_keys, size=10**largest + SPARE)
    rows = np.column_stack([kind.points(len(keys))[:, 0], keys])

    def learn(state: FloatArray) -> None:
        fleet.update(state[:, 1].astype(np.int64), state[:, 0])

    calm = detector_kind().points(len(keys))
    jobs: Jobs = {}
    for n in (10**power for power in range(largest + 1)):
        jobs[f"points per call: fleet, K=2: {n}"] = cycling_job(learn, rows, n)
        jobs[f"points per call: one stream, K=2: {n}"] = cycling_job(kind.learner().process, rows[:, :1], n)
        jobs[f"points per call: one stream, Detector: {n}"] = cycling_job(detector_kind().learner().process, calm, n)
    return jobs


def jobs_of_kind(kind: Kind, n_streams: int) -> Jobs:
    """`update(x)`, `process` and a fleet."""
    rows = kind.points(20_000)
    points = rows[:2000, 0].tolist() if kind.dim == 1 else list(rows[:2000])
    return {
        "fleet": kind.ticks(n_streams),
        "process": cycling_job(kind.learner().process, rows, len(rows)),
        "update(x)": (partial(loop, kind.learner().update, points), len(points)),
    }


TITLE = (
    f"update and process on one core, fleets on {n_threads()}; calm Gaussian streams, after the start; best of several"
)
CASES = ((1, 1), (2, 1), (5, 1), (2, 3), (2, 8), (5, 8))  # components, coordinates
SIZES = (1_000, 100_000, 1_000_000)
MEMORY = 4e9  # bytes, the most that the states of one fleet take here
MAX_STREAMS_TIMED_TOGETHER = 100_000  # larger fleets are timed one kind after another
NUMPY = "online EM in numpy, K=2, all streams at once"


def measure(quick: bool) -> list[Figure]:
    """The table, then how cost grows."""
    short, rounds = (20, 3) if quick else (1, 5)
    kinds = {f"K={K}, d={d}": plain(K, d) for K, d in (CASES[:2] if quick else CASES)} | detector_kinds()
    rivals, sizes = all_rivals(), [n // short for n in SIZES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # of a thousand learners one may lose a component
        figures = [Figure(f"{name}: state", kind.bytes, "bytes per stream") for name, kind in kinds.items()]
        figures += one_stream(kinds, rivals, short, rounds)
        figures += fleets(kinds, rivals, sizes, short, 3)
        return figures + growth(quick)


def one_stream(kinds: Mapping[str, Kind], rivals: Sequence[Rival], short: int, rounds: int) -> list[Figure]:
    """Time `update(x)` and `process` of every kind, and the rivals. short: how many times fewer points."""
    jobs: dict[str, tuple[Job, int]] = {}
    for name, kind in kinds.items():
        rows = kind.points(100_000 // short)
        some = rows[: len(rows) // 10]
        points = some[:, 0].tolist() if kind.dim == 1 else list(some)
        jobs[f"{name}: update(x)"] = partial(loop, kind.learner().update, points), len(points)
        jobs[f"{name}: process"] = partial(kind.learner().process, rows), len(rows)
    jobs |= {f"{rival.name}: one stream": rival.one_stream(short) for rival in rivals}
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
            if n <= MAX_STREAMS_TIMED_TOGETHER:
                jobs |= job
            else:
                figures += times_a_point(job, rounds)
    return times_a_point(jobs, rounds) + figures
