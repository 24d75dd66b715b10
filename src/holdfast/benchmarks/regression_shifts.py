"""Changes beyond any threshold, and bursts of spoilt rows: where a threshold locks out, and what patience is worth.

What frees a regression that is locked out makes it learn a burst that is longer than its patience: both are measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from holdfast.benchmarks.figure import Figure
from holdfast.benchmarks.pairs import Kind
from holdfast.benchmarks.regression_runs import LINEAR, Setting, columns, results
from holdfast.benchmarks.regressors import PATIENT

JUMPS = (
    *(Kind(f"coefficients by {size:g}σ", turn=size) for size in (20.0, 100.0)),
    *(Kind(f"level by {size:g}σ", turn=0.0, jump=size) for size in (5.0, 10.0, 20.0, 50.0)),
)
JUMPERS = (
    "SRA",
    "SRA, defaults",
    PATIENT,
    f"{PATIENT}, defaults",
    "SRA, no threshold",
    "river, Huber",
    "river, Cauchy",
)
BURSTS = (
    Kind("no burst", turn=0.0),
    *(
        Kind(f"{rows} rows, {size:g}σ too high", turn=0.0, burst=rows, by=size)
        for size in (20.0, 100.0)
        for rows in (10, 20, 40)
    ),
)
BURST_BY = ("SRA", PATIENT, "SRA, no threshold", "river, Huber", "river, Cauchy")
BURST_ROWS, BURST_SEEDS = 2000, range(30)  # a burst is in the middle of its stream


def jumps(tuned: dict[str, Setting], rows: int, seeds: Sequence[int], quick: bool) -> Iterator[Figure]:
    """In how many streams the truth was found again after a change, and after how many rows."""
    entries = {name: entry for name, entry in columns(tuned, LINEAR).items() if name in JUMPERS}
    for kind in JUMPS[::5] if quick else JUMPS:
        for name, each in results(LINEAR, kind, entries, rows, seeds, quick).items():
            taken = np.array([one.rows for one in each])
            found = np.array([one.rows < rows - rows // 2 for one in each])
            yield Figure(f"jump, {kind.name}, {name}: found again", 100.0 * float(found.mean()), "%")
            yield Figure(f"jump, {kind.name}, {name}: rows", float(np.median(taken)), "rows")


def bursts(tuned: dict[str, Setting], quick: bool) -> Iterator[Figure]:
    """The mean error from the first row of a burst to the end of the stream."""
    entries = {name: entry for name, entry in columns(tuned, LINEAR).items() if name in BURST_BY}
    seeds = BURST_SEEDS[:1] if quick else BURST_SEEDS
    for kind in BURSTS[::5] if quick else BURSTS:
        for name, each in results(LINEAR, kind, entries, BURST_ROWS, seeds, quick).items():
            after = np.array([one.after for one in each])
            yield Figure(f"burst, {kind.name}, {name}: error", float(after.mean()), "σ²")
            yield Figure(f"burst, {kind.name}, {name}: error, std", float(after.std()), "σ²")
