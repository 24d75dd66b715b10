"""Time per point by stream type and call, against baselines, and its scaling."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from limpet._parallel import n_threads
from limpet.exceptions import LimpetWarning
from limpet_lab.baselines.timing import Baseline, call_each, make_baselines, make_numpy_job
from limpet_lab.bench._measurement import Figure, format_power_of_ten
from limpet_lab.bench._scenarios import FloatArray
from limpet_lab.bench._timing import Job, measure_times_per_point
from limpet_lab.bench._workloads import (
    SPARE_ROWS,
    StreamKind,
    make_cycling_job,
    make_detector_kind,
    make_detector_kinds,
    make_sra_kind,
)

# How the time per point grows with the streams, the points of a call, the components and the variables.

COMPONENT_COUNTS, DIMENSIONS = (1, 2, 3, 5, 8), (1, 2, 3, 8, 16)
Jobs = dict[str, tuple[Job, int]]


def measure_growth(quick: bool) -> list[Figure]:
    """Return figures named "quantity: what is timed: amount"."""
    largest, rounds = (3, 2) if quick else (6, 5)
    components, dims = (COMPONENT_COUNTS[:2], DIMENSIONS[:1]) if quick else (COMPONENT_COUNTS, DIMENSIONS)
    figures = measure_times_per_point(make_stream_jobs(largest) | make_point_jobs(largest), rounds)
    n = 10 ** min(largest, 5)
    jobs: Jobs = {}
    for K in components:
        jobs |= {f"components K: {name}: {K}": job for name, job in make_kind_jobs(make_sra_kind(K, 1), n).items()}
    for d in dims:
        jobs |= {f"variables d: {name}: {d}": job for name, job in make_kind_jobs(make_sra_kind(2, d), n).items()}
    return figures + measure_times_per_point(jobs, rounds)


def make_stream_jobs(largest: int) -> Jobs:
    """Return jobs with a point for each of 1 … 10^largest streams."""
    adwin = make_baselines()[0]
    assert "ADWIN" in adwin.name
    jobs: Jobs = {}
    for n in (10**power for power in range(largest + 1)):
        jobs[f"streams: fleet, K=2: {n}"] = make_sra_kind().make_tick_job(n)
        jobs[f"streams: EM in numpy: {n}"] = make_numpy_job(n)
        if n <= 100_000:
            jobs[f"streams: fleet, Detector: {n}"] = make_detector_kind().make_tick_job(n)
        if n <= 10_000:
            jobs[f"streams: dict of ADWIN: {n}"] = adwin.make_dict_job_of(n)
    return jobs


def make_point_jobs(largest: int) -> Jobs:
    """Return jobs with 1 … 10^largest points per call, for one stream and for random keys, which are looked up."""
    kind, n_keys = make_sra_kind(), 10 ** min(largest, 5)
    fleet = kind.make_fleet(range(n_keys))
    keys = np.random.default_rng(0).integers(n_keys, size=10**largest + SPARE_ROWS)
    rows = np.column_stack([kind.draw_points(len(keys))[:, 0], keys])

    def learn(state: FloatArray) -> None:
        fleet.update(state[:, 1].astype(np.int64), state[:, 0])

    stable = make_detector_kind().draw_points(len(keys))
    jobs: Jobs = {}
    for n in (10**power for power in range(largest + 1)):
        jobs[f"points per call: fleet, K=2: {n}"] = make_cycling_job(learn, rows, n)
        process, process_stable = (
            kind.make_started_learner().process,
            make_detector_kind().make_started_learner().process,
        )
        jobs[f"points per call: one stream, K=2: {n}"] = make_cycling_job(process, rows[:, :1], n)
        jobs[f"points per call: one stream, Detector: {n}"] = make_cycling_job(process_stable, stable, n)
    return jobs


def make_kind_jobs(kind: StreamKind, n_streams: int) -> Jobs:
    """Return jobs of `update(x)`, `process` and a fleet."""
    rows = kind.draw_points(20_000)
    points = rows[:2000, 0].tolist() if kind.dim == 1 else list(rows[:2000])
    return {
        "fleet": kind.make_tick_job(n_streams),
        "process": make_cycling_job(kind.make_started_learner().process, rows, len(rows)),
        "update(x)": (partial(call_each, kind.make_started_learner().update, points), len(points)),
    }


TITLE = f"update and process on one core, fleets on {n_threads()}; stable Gaussian streams; best of several rounds"
CASES = ((1, 1), (2, 1), (5, 1), (2, 3), (2, 8), (5, 8))  # components, coordinates
FLEET_SIZES = (1_000, 100_000, 1_000_000)
MAX_FLEET_BYTES = 4e9  # bytes, the most that the states of one fleet take here
MAX_STREAMS_TIMED_TOGETHER = 100_000  # larger fleets are timed one kind after another
NUMPY_LABEL = "online EM in numpy, K=2, all streams at once"


def measure(quick: bool) -> list[Figure]:
    """Measure the table, then how cost grows."""
    divisor, rounds = (20, 3) if quick else (1, 5)
    kinds = {f"K={K}, d={d}": make_sra_kind(K, d) for K, d in (CASES[:2] if quick else CASES)} | make_detector_kinds()
    baselines, sizes = make_baselines(), [n // divisor for n in FLEET_SIZES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # of a thousand learners one may lose a component
        figures = [Figure(f"{name}: state", kind.state_bytes, "bytes per stream") for name, kind in kinds.items()]
        figures += measure_one_stream(kinds, baselines, divisor, rounds)
        figures += measure_fleets(kinds, baselines, sizes, divisor, 3)
        return figures + measure_growth(quick)


def measure_one_stream(
    kinds: Mapping[str, StreamKind], baselines: Sequence[Baseline], divisor: int, rounds: int
) -> list[Figure]:
    """Time `update(x)` and `process` of every kind, and the baselines. divisor: how many times fewer points."""
    jobs: dict[str, tuple[Job, int]] = {}
    for name, kind in kinds.items():
        rows = kind.draw_points(100_000 // divisor)
        update_rows = rows[: len(rows) // 10]
        points = update_rows[:, 0].tolist() if kind.dim == 1 else list(update_rows)
        jobs[f"{name}: update(x)"] = partial(call_each, kind.make_started_learner().update, points), len(points)
        jobs[f"{name}: process"] = partial(kind.make_started_learner().process, rows), len(rows)
    jobs |= {f"{baseline.name}: one stream": baseline.make_single_job(divisor) for baseline in baselines}
    return measure_times_per_point(jobs, rounds)


def measure_fleets(
    kinds: Mapping[str, StreamKind], baselines: Sequence[Baseline], sizes: Sequence[int], divisor: int, rounds: int
) -> list[Figure]:
    """Time one point for each of many streams: fleets, dicts of baselines, and numpy over all streams."""
    jobs = {
        f"{baseline.name}: a dict of {format_power_of_ten(baseline.get_dict_size(divisor))}": baseline.make_dict_job(
            divisor
        )
        for baseline in baselines
    }
    figures = []
    for n in sizes:
        job_makers = {
            name: kind.make_tick_job for name, kind in kinds.items() if n * kind.state_bytes <= MAX_FLEET_BYTES
        } | {NUMPY_LABEL: make_numpy_job}
        for name, make_job in job_makers.items():
            job = {f"{name}: fleet of {format_power_of_ten(n)}": make_job(n)}
            if n <= MAX_STREAMS_TIMED_TOGETHER:
                jobs |= job
            else:
                figures += measure_times_per_point(job, rounds)
    return measure_times_per_point(jobs, rounds) + figures
