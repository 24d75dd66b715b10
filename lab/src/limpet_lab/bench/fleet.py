"""Many streams at once: updates per second, bytes per stream, long dataframes, files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import limpet
from limpet._jit.simd import LANES
from limpet._parallel import n_threads, parallel_for
from limpet.fleet import Fleet
from limpet.fleet._backends import PointSchedule, ResultBuffer, SRABackend
from limpet_lab.bench._measurement import Figure, format_power_of_ten
from limpet_lab.bench._timing import Job, measure_best_times
from limpet_lab.bench._workloads import SPARE_ROWS, StreamKind, make_cycling_job, make_detector_kinds, make_sra_kind

TITLE = f"{n_threads()} cores; plain SRA with K=2, d=1 and 1 % outliers, Detector with K=1, d=1 on a stable stream"
OUTLIER_SHARE = 0.01
MAX_FLEET_BYTES = 3e9  # bytes, the most that the states of one fleet take here
GOALS_BYTES = {"Detector": 3000, "compact Detector": 512}  # bytes per stream


def measure(quick: bool) -> list[Figure]:
    """Measure a million streams: ticks, frames, starts, files."""
    n, rounds = (10_000, 3) if quick else (1_000_000, 10)
    n_rows, n_keys = (100_000, 1000) if quick else (10_000_000, 100_000)
    figures = measure_ticks(n, rounds)
    for name, kind in make_detector_kinds().items():
        if "K=1" in name:
            figures += measure_detector_ticks(name.partition(",")[0], kind, 2000 if quick else n, 3)
    return figures + measure_starts(200 if quick else 5000) + measure_frames(n_rows, n_keys, 2) + measure_files(n, 3)


# A tick: one point for each stream, the keys those of the tick before


def measure_ticks(n: int, rounds: int) -> list[Figure]:
    """Measure updates per second of `update(keys, X)`, against the kernel alone: lanes and scalar, one core and all."""
    kind, keys = make_sra_kind(outliers=OUTLIER_SHARE), np.arange(n)
    size = kind.state_bytes  # learns, so that what it takes is not counted below
    rows = kind.draw_points(n + SPARE_ROWS)
    memory_before = get_resident_bytes()
    fleet = kind.make_fleet(keys.tolist())
    job, points = make_cycling_job(partial(fleet.update, keys), rows, n)
    growth = max(get_resident_bytes() - memory_before, 0)
    times = measure_best_times({"fleet": job} | make_kernel_jobs(fleet, rows), rounds)
    speeds = {name: (points if name == "fleet" else n) / seconds / 1e6 for name, seconds in times.items()}
    title, alone = f"{format_power_of_ten(n)} streams × 1 point", "scalar kernel alone"
    one_core_names = ("lanes, one core", "scalar, one core")
    return [
        Figure(f"{title}: update(keys, X)", speeds["fleet"], "million/s", at_least=50.0),
        *(Figure(f"{title}: kernel alone, {name}", speeds[name], "million/s") for name in times if "core" in name),
        Figure(f"{title}: states read and written, nothing more", speeds["memory"], "million/s"),
        Figure(
            f"update(keys, X) over the {alone}, one core",
            speeds["fleet"] / speeds[one_core_names[1]],
            "×",
            at_least=3.0,
        ),
        Figure(f"update(keys, X) over the {alone}, all cores", speeds["fleet"] / speeds["scalar, all cores"], "×"),
        Figure(
            "kernel alone on lanes over scalar, one core", speeds[one_core_names[0]] / speeds[one_core_names[1]], "×"
        ),
        Figure("state after the start", size, "bytes per stream", 128),
        Figure("growth of the process's memory, with keys and what a call leaves", growth / n, "bytes per stream"),
    ]


def make_kernel_jobs(fleet: Fleet, rows: Any) -> dict[str, Job]:
    """Time the compiled code alone, without input and output: batched on lanes, and one stream after another.

    And what no code can be quicker than: the states come from memory and go there.
    """
    backend, states, n = fleet._executor.backend, fleet._membership.state_matrix.states, len(fleet)
    assert isinstance(backend, SRABackend)
    assert backend.kernels.run_lanes is not None
    schedule, results = PointSchedule.from_rows(np.arange(n), n), ResultBuffer.allocate(n, backend.n_results)
    points = np.ascontiguousarray(rows[:n])
    arguments = (states, schedule.streams, schedule.starts, schedule.counts, schedule.order, points, backend.settings)
    workspace, outputs = np.empty(backend.kernels.block_size), (results.values[:, 0], results.outcomes)
    lane_arguments = (*arguments, workspace, np.empty(LANES, np.int64), schedule.is_in_order, *outputs)
    jobs: dict[str, Job] = {
        "lanes, one core": partial(backend.kernels.run_lanes, *lane_arguments),
        "lanes, all cores": partial(backend.run_in_lanes, states, schedule, points, results),
        "scalar, one core": partial(
            backend.kernels.run_sequential, *arguments, np.empty(backend.kernels.work_size), *outputs
        ),
        "scalar, all cores": partial(backend.run_sequential, states, schedule, points, results),
        "memory": partial(
            parallel_for, lambda part: np.multiply(part, 1.0, out=part), np.array_split(states, n_threads())
        ),
    }
    for job in jobs.values():  # compiled
        job()
    return jobs


def measure_detector_ticks(title: str, kind: StreamKind, n: int, rounds: int) -> list[Figure]:
    """Measure bytes per stream, and updates per second with as many streams as fit."""
    n = min(n, int(MAX_FLEET_BYTES / kind.state_bytes) // 10_000 * 10_000 or n)
    job, points = kind.make_tick_job(n)
    seconds = measure_best_times({title: job}, rounds)[title]
    return [
        Figure(f"{title}: state after the start", kind.state_bytes, "bytes per stream", GOALS_BYTES[title]),
        Figure(
            f"{title}: {format_power_of_ten(n)} streams × 1 point", points / seconds / 1e6, "million/s", at_least=3.0
        ),
    ]


def get_resident_bytes() -> int:
    """Return the resident bytes of this process; 0 where the system does not report them."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0


def measure_starts(n: int) -> list[Figure]:
    """Time the first points of a new stream, from which it starts."""
    kind = make_sra_kind(outliers=OUTLIER_SHARE)
    keys, rows = np.repeat(np.arange(n), kind.make_learner().n_init), kind.draw_points(n * kind.make_learner().n_init)
    seconds = measure_best_times({"starts": lambda: Fleet(kind.make_learner()).update(keys, rows)}, 2)["starts"]
    return [
        Figure(
            f"a new stream: its start, {format_power_of_ten(n)} of them in a call", seconds / n * 1e6, "µs per stream"
        )
    ]


# Long dataframes


def measure_frames(n_rows: int, n_keys: int, rounds: int) -> list[Figure]:
    """Measure rows per second of `process(frame)`, by library and kind of key; all streams have started."""
    rng, kind = np.random.default_rng(0), make_sra_kind(outliers=OUTLIER_SHARE)
    codes = rng.permutation(np.resize(np.arange(n_keys), n_rows))
    values = kind.draw_points(n_rows)[:, 0]
    integer_keys, string_keys = [10 * i for i in range(n_keys)], [f"sensor-{i:06d}" for i in range(n_keys)]
    fleets = {"integers": kind.make_fleet(integer_keys), "strings": kind.make_fleet(string_keys)}
    goals = {"polars, integers": 8.0, "polars, strings": 8.0}
    title = f"process, {format_power_of_ten(n_rows)} rows, {format_power_of_ten(n_keys)} keys, shuffled"
    figures = []
    for library in KEY_MAKERS:
        if find_spec(library) is None:
            continue
        for keys, column in KEY_MAKERS[library](np.array(integer_keys)[codes], string_keys, codes).items():
            fleet = fleets["integers" if keys == "integers" else "strings"]
            name, frame = f"{library}, {keys}", make_frame(library, {"sensor": column, "a": values})
            job = partial(fleet.process, frame, key="sensor", values=["a"])
            speed = n_rows / measure_best_times({name: job}, rounds)[name] / 1e6
            figures.append(Figure(f"{title}: {name}", speed, "million rows/s", at_least=goals.get(name)))
    return figures


def make_frame(library: str, columns: Mapping[str, Any]) -> Any:
    """Return a dataframe of this library."""
    module: Any = __import__(library)
    return module.table(dict(columns)) if library == "pyarrow" else module.DataFrame(dict(columns))


def make_polars_keys(numbers: Any, names: list[str], codes: Any) -> dict[str, Any]:
    """Return the keys as columns of polars."""
    import polars

    column = polars.Series(names).gather(codes)
    return {
        "integers": polars.Series(numbers),
        "strings": column,
        "strings as categories": column.cast(polars.Categorical),
    }


def make_pandas_keys(numbers: Any, names: list[str], codes: Any) -> dict[str, Any]:
    """Return the keys as columns of pandas."""
    import pandas

    categories = pandas.Categorical.from_codes(codes, names)
    return {
        "integers": pandas.Series(numbers),
        "strings": pandas.Series(np.array(names, object)[codes]),
        "strings as categories": pandas.Series(categories),
    }


def make_pyarrow_keys(numbers: Any, names: list[str], codes: Any) -> dict[str, Any]:
    """Return the keys as columns of pyarrow."""
    import pyarrow

    column = pyarrow.array(names).take(pyarrow.array(codes))
    coded = pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes.astype(np.int32)), pyarrow.array(names))
    return {"integers": pyarrow.array(numbers), "strings": column, "strings as categories": coded}


KEY_MAKERS: dict[str, Callable[[Any, list[str], Any], dict[str, Any]]] = {
    "polars": make_polars_keys,
    "pandas": make_pandas_keys,
    "pyarrow": make_pyarrow_keys,
}


# Files


def measure_files(n: int, rounds: int) -> list[Figure]:
    """Time how long it takes to save a fleet and to load it."""
    fleet = make_sra_kind().make_fleet(range(n))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.limpet"
        jobs: dict[str, Job] = {"saved": partial(fleet.save, path), "loaded": partial(limpet.load, path)}
        times = measure_best_times(jobs, rounds)
        assert len(limpet.load(path)) == n  # type: ignore[arg-type]
    return [
        Figure(f"{format_power_of_ten(n)} states {operation}", seconds, "s", 1.0)
        for operation, seconds in times.items()
    ]
