"""Extrapolate from `limpet bench spark`: cores, memory, disk and money for 10^9 points per day.

Assumptions are the constants at the top.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from page_tools import NOT_MEASURED, Figures, table

from limpet_lab.bench._measurement import format_power_of_ten
from limpet_lab.bench.spark import (
    COMPACT_MODEL,
    N_CORES,
    DETECTOR_MODEL,
    FULL_BATCH_LABEL,
    N_GOAL_KEYS,
    STATE_BYTES_LABEL,
    PLAIN_MODEL,
    BATCH_ROWS,
    SHUFFLED_BYTES_LABEL,
    TENTH_BATCH_LABEL,
    WRITTEN_BYTES_LABEL,
    format_case,
)

POINTS, DAY = 10**9, 86_400  # a day: points, seconds
HEADROOM = 3  # times the cores of an even load: for peaks, and to catch up after a stop
COPIES = 2  # versions of the states in memory: spark.sql.streaming.maxBatchesToRetainInMemory
RETAINED = 100  # batches on disk: spark.sql.streaming.minBatchesToRetain
INTERVALS = (10, 60)  # seconds between two micro-batches
EXECUTOR = 8e9  # bytes of an executor's memory that are for states
PRICE = 0.05  # of a core for an hour, in dollars
KEYS = (10**5, 10**6, 10**7)
NOISY = "*Not to be computed: the machine was too busy with other things for times to mean anything.*\n"
UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))


@dataclass(frozen=True)
class Measured:
    """Figures of a model at 10^5 keys: seconds of two micro-batches on `cores`, bytes per key, bytes per row."""

    long: float
    short: float
    written: float
    held: float
    shuffled: float
    cores: int

    @property
    def seconds_per_row(self) -> float:
        """Return the seconds of a core for a row."""
        return self.cores * (self.long - self.short) / (BATCH_ROWS - BATCH_ROWS // 10)

    @property
    def seconds_per_key(self) -> float:
        """Return the seconds of a core for the state of a key in a micro-batch, fixed costs included."""
        return (self.cores * self.long - BATCH_ROWS * self.seconds_per_row) / N_GOAL_KEYS

    def core_seconds(self, keys: int, interval: int) -> float:
        """Return the seconds of a core for a day."""
        return POINTS * self.seconds_per_row + DAY / interval * keys * self.seconds_per_key


def reach(figures: Figures) -> str:
    """Return the section in Markdown."""
    names = {
        model: [f"{format_case(model, N_GOAL_KEYS)}: {what}" for what in (FULL_BATCH_LABEL, TENTH_BATCH_LABEL, WRITTEN_BYTES_LABEL, STATE_BYTES_LABEL, SHUFFLED_BYTES_LABEL)]
        for model in (PLAIN_MODEL, COMPACT_MODEL, DETECTOR_MODEL)
    }
    if any(name not in figures for group in names.values() for name in group):
        return NOT_MEASURED
    models = {model: Measured(*(figures[name].value for name in group), N_CORES) for model, group in names.items()}
    if any(not model.long > model.short > model.long / 10 for model in models.values()):
        return NOISY
    return "\n".join([assumed(), worked_example(models[PLAIN_MODEL]), costs(models), cores_table(models), *states(models)])


def assumed() -> str:
    """Return the assumptions."""
    billion, (often, seldom) = format_power_of_ten(POINTS), INTERVALS
    return f"""Assumptions, to be replaced by your own figures:

- {billion} points per day, evenly: {billion} / {DAY:,} s = {POINTS / DAY:,.0f} rows per second;
- a micro-batch every {often} or {seldom} seconds, with rows for all buckets in each;
- {HEADROOM} times the cores that an even load takes, for peaks and to catch up after a stop;
- {COPIES} versions of the states in memory and {RETAINED} on disk, the defaults of Spark
  (`spark.sql.streaming.maxBatchesToRetainInMemory`, `spark.sql.streaming.minBatchesToRetain`);
- {format_bytes(EXECUTOR)} of an executor's memory for states;
- {PRICE} dollars for a core and an hour.

The rest is arithmetic on the figures above, to two digits.
"""


def worked_example(model: Measured) -> str:
    """Return the arithmetic of one model in full."""
    few, keys, interval, cores = BATCH_ROWS // 10, KEYS[0], INTERVALS[0], model.cores
    long, short, row, key = (
        two_digits(number)
        for number in (model.long, model.short, model.seconds_per_row * 1e6, model.seconds_per_key * 1e6)
    )
    batches = DAY // interval
    rows_take, keys_take = (
        two_digits(POINTS * model.seconds_per_row),
        two_digits(batches * keys * model.seconds_per_key),
    )
    seconds = model.core_seconds(keys, interval)
    hours, dollars = two_digits(seconds / 3600), two_digits(seconds / 3600 * PRICE)
    all_day, more = two_digits(seconds / DAY), two_digits(HEADROOM * seconds / DAY)
    return f"""A micro-batch takes time for its rows, and time for its states, all of which are read and written.
`{PLAIN_MODEL}` on {format_power_of_ten(N_GOAL_KEYS)} keys took {long} s for {BATCH_ROWS:,} rows and {short} s for {few:,}, on {cores} cores:

- a row takes {cores} × ({long} s − {short} s) / {BATCH_ROWS - few:,} = {row} µs of a core;
- a key takes, in each micro-batch, ({cores} × {long} s − {BATCH_ROWS:,} × {row} µs) / {N_GOAL_KEYS:,} = {key} µs of a core;
  this includes the fixed cost of a micro-batch, so that it is too large rather than too small for more keys;
- a day takes {POINTS:,} × {row} µs = {rows_take} s for the rows, and for the states, with a micro-batch every
  {interval} s, {DAY:,} / {interval} × {keys:,} × {key} µs = {keys_take} s. In all {two_digits(seconds)} s of a core:
  {hours} core-hours, {dollars} dollars, or {all_day} cores all day; with headroom {more} cores.
"""


def costs(models: dict[str, Measured]) -> str:
    """Return the costs of a row and a key, for each model."""
    rows = [
        [
            f"`{name}`",
            two_digits(model.seconds_per_row * 1e6),
            two_digits(model.seconds_per_key * 1e6),
            two_digits(1 / model.seconds_per_row),
            two_digits(BATCH_ROWS / model.long / model.cores),
        ]
        for name, model in models.items()
    ]
    heading = [
        "model",
        "µs per row",
        "µs per key and micro-batch",
        "rows per second and core, states not counted",
        "as measured, states counted",
    ]
    return table(heading, rows)


def cores_table(models: dict[str, Measured]) -> str:
    """Return what a day takes, by model, keys and interval."""
    rows = []
    for name, model in models.items():
        for keys in KEYS:
            cells = []
            for interval in INTERVALS:
                hours = model.core_seconds(keys, interval) / 3600
                cells += [two_digits(HEADROOM * hours / 24), two_digits(hours), two_digits(hours * PRICE)]
            rows.append([f"`{name}`", format_power_of_ten(keys), *cells])
    heading = ["model", "keys"]
    for interval in INTERVALS:
        heading += [f"cores, every {interval} s", "core-hours", "dollars"]
    return (
        f"For {format_power_of_ten(POINTS)} points, cores with headroom {HEADROOM}, core-hours and dollars without:\n\n"
        + table(heading, rows, words=2)
    )


def states(models: dict[str, Measured]) -> list[str]:
    """Return memory, state store and shuffle."""
    rows = []
    for name, model in models.items():
        for keys in KEYS:
            written = keys * model.written
            days = [format_bytes(written * DAY / interval) for interval in INTERVALS]
            rows.append(
                [
                    f"`{name}`",
                    format_power_of_ten(keys),
                    format_bytes(COPIES * keys * model.held),
                    f"{math.ceil(COPIES * keys * model.held / EXECUTOR)}",
                    format_bytes(written),
                    *days,
                    format_bytes(RETAINED * written),
                ]
            )
    heading = [
        "model",
        "keys",
        "in memory",
        "executors",
        "written, a micro-batch",
        *(f"a day, every {interval} s" for interval in INTERVALS),
        "kept on disk",
    ]
    held = [f"{two_digits(EXECUTOR / COPIES / model.held)} keys of `{name}`" for name, model in models.items()]
    row, executor = max(model.shuffled for model in models.values()), format_bytes(EXECUTOR)
    return [
        f"""States in memory are keys × bytes of a key in Java's memory × {COPIES} versions; with {executor} for
them an executor holds {join_or(held)}. A micro-batch writes keys ×
bytes of a key on disk; {RETAINED} times that is kept on disk. In addition, each Python worker holds the bucket that it
is learning.
""",
        table(heading, rows, words=2),
        f"""Shuffled are {two_digits(row)} bytes per row (a key, a time and a value, packed): × {POINTS:,} =
{format_bytes(row * POINTS)} per day, {format_bytes(row * POINTS / DAY)} per second, for every learner.
""",
    ]


def two_digits(number: float) -> str:
    """Format with two digits.

    >>> two_digits(123456.0), two_digits(12.6), two_digits(0.0346)
    ('120,000', '13', '0.035')
    """
    if number == 0:
        return "0"
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.2g}"


def format_bytes(n_bytes: float) -> str:
    """Format with a unit.

    >>> format_bytes(14.5e9), format_bytes(2)
    ('14 GB', '2 bytes')
    """
    unit, scale = next(((unit, scale) for unit, scale in UNITS if n_bytes >= scale), UNITS[-1])
    return f"{two_digits(n_bytes / scale)} {unit}"


def join_or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
