"""Extrapolate from `limpet bench spark`: cores, memory, disk and money for 10^9 points per day.

Assumptions are the constants at the top.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from page_tools import NOT_MEASURED, Figures, format_table

from limpet_lab.bench._measurement import format_power_of_ten
from limpet_lab.bench.spark import (
    BATCH_ROWS,
    COMPACT_MODEL,
    DETECTOR_MODEL,
    FULL_BATCH_LABEL,
    N_CORES,
    N_GOAL_KEYS,
    PLAIN_MODEL,
    SHUFFLED_BYTES_LABEL,
    STATE_BYTES_LABEL,
    TENTH_BATCH_LABEL,
    WRITTEN_BYTES_LABEL,
    format_case,
)

N_POINTS_PER_DAY, DAY_S = 10**9, 86_400  # a day: points, seconds
HEADROOM_FACTOR = 3  # times the cores of an even load: for peaks, and to catch up after a stop
N_STATE_COPIES = 2  # versions of the states in memory: spark.sql.streaming.maxBatchesToRetainInMemory
N_RETAINED_BATCHES = 100  # batches on disk: spark.sql.streaming.minBatchesToRetain
BATCH_INTERVALS_S = (10, 60)  # seconds between two micro-batches
EXECUTOR_STATE_BYTES = 8e9  # bytes of an executor's memory that are for states
CORE_HOUR_DOLLARS = 0.05  # of a core for an hour, in dollars
KEY_COUNTS = (10**5, 10**6, 10**7)
NOISY_TEXT = "*Not to be computed: the machine was too busy with other things for times to mean anything.*\n"
BYTE_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))


@dataclass(frozen=True)
class MeasuredModel:
    """Figures of a model at 10^5 keys: seconds of two micro-batches on `cores`, bytes per key, bytes per row."""

    full_batch_s: float
    tenth_batch_s: float
    written_bytes_per_key: float
    state_bytes_per_key: float
    shuffled_bytes_per_row: float
    n_cores: int

    @property
    def seconds_per_row(self) -> float:
        """Return the seconds of a core for a row."""
        return self.n_cores * (self.full_batch_s - self.tenth_batch_s) / (BATCH_ROWS - BATCH_ROWS // 10)

    @property
    def seconds_per_key(self) -> float:
        """Return the seconds of a core for the state of a key in a micro-batch, fixed costs included."""
        return (self.n_cores * self.full_batch_s - BATCH_ROWS * self.seconds_per_row) / N_GOAL_KEYS

    def compute_core_seconds(self, keys: int, interval: int) -> float:
        """Return the seconds of a core for a day."""
        return N_POINTS_PER_DAY * self.seconds_per_row + DAY_S / interval * keys * self.seconds_per_key


def make_section(figures: Figures) -> str:
    """Return the section in Markdown."""
    names = {
        model: [
            f"{format_case(model, N_GOAL_KEYS)}: {label}"
            for label in (
                FULL_BATCH_LABEL,
                TENTH_BATCH_LABEL,
                WRITTEN_BYTES_LABEL,
                STATE_BYTES_LABEL,
                SHUFFLED_BYTES_LABEL,
            )
        ]
        for model in (PLAIN_MODEL, COMPACT_MODEL, DETECTOR_MODEL)
    }
    if any(name not in figures for group in names.values() for name in group):
        return NOT_MEASURED
    models = {model: MeasuredModel(*(figures[name].value for name in group), N_CORES) for model, group in names.items()}
    if any(not model.full_batch_s > model.tenth_batch_s > model.full_batch_s / 10 for model in models.values()):
        return NOISY_TEXT
    return "\n".join(
        [
            list_assumptions(),
            make_example(models[PLAIN_MODEL]),
            make_cost_table(models),
            make_core_table(models),
            *make_state_sections(models),
        ]
    )


def list_assumptions() -> str:
    """Return the assumptions."""
    points, (shortest, longest) = format_power_of_ten(N_POINTS_PER_DAY), BATCH_INTERVALS_S
    return f"""Assumptions, to be replaced by your own figures:

- {points} points per day, evenly: {points} / {DAY_S:,} s = {N_POINTS_PER_DAY / DAY_S:,.0f} rows per second;
- a micro-batch every {shortest} or {longest} seconds, with rows for all buckets in each;
- {HEADROOM_FACTOR} times the cores that an even load takes, for peaks and to catch up after a stop;
- {N_STATE_COPIES} versions of the states in memory and {N_RETAINED_BATCHES} on disk, the defaults of Spark
  (`spark.sql.streaming.maxBatchesToRetainInMemory`, `spark.sql.streaming.minBatchesToRetain`);
- {format_bytes(EXECUTOR_STATE_BYTES)} of an executor's memory for states;
- {CORE_HOUR_DOLLARS} dollars for a core and an hour.

The rest is arithmetic on the figures above, to two digits.
"""


def make_example(model: MeasuredModel) -> str:
    """Return the arithmetic of one model in full."""
    rows, tenth, keys, interval, cores = (
        BATCH_ROWS,
        BATCH_ROWS // 10,
        KEY_COUNTS[0],
        BATCH_INTERVALS_S[0],
        model.n_cores,
    )
    long, short, row, key = (
        format_two_digits(number)
        for number in (
            model.full_batch_s,
            model.tenth_batch_s,
            model.seconds_per_row * 1e6,
            model.seconds_per_key * 1e6,
        )
    )
    points, batches = N_POINTS_PER_DAY, DAY_S // interval
    rows_take, keys_take, seconds = (
        format_two_digits(number)
        for number in (
            points * model.seconds_per_row,
            batches * keys * model.seconds_per_key,
            model.compute_core_seconds(keys, interval),
        )
    )
    hours = model.compute_core_seconds(keys, interval) / 3600
    core_hours, dollars = format_two_digits(hours), format_two_digits(hours * CORE_HOUR_DOLLARS)
    all_day, peak = format_two_digits(hours / 24), format_two_digits(HEADROOM_FACTOR * hours / 24)
    goal_keys = format_power_of_ten(N_GOAL_KEYS)
    return f"""A micro-batch takes time for its rows, and time for its states, all of which are read and written.
`{PLAIN_MODEL}` on {goal_keys} keys took {long} s for {rows:,} rows and {short} s for {tenth:,}, on {cores} cores:

- a row takes {cores} × ({long} s − {short} s) / {rows - tenth:,} = {row} µs of a core;
- a key takes, in each micro-batch, ({cores} × {long} s − {rows:,} × {row} µs) / {N_GOAL_KEYS:,} = {key} µs of a core;
  this includes the fixed cost of a micro-batch, so that it is too large rather than too small for more keys;
- a day takes {points:,} × {row} µs = {rows_take} s for the rows, and for the states, with a micro-batch every
  {interval} s, {DAY_S:,} / {interval} × {keys:,} × {key} µs = {keys_take} s. In all {seconds} s of a core:
  {core_hours} core-hours, {dollars} dollars, or {all_day} cores all day; with headroom {peak} cores.
"""


def make_cost_table(models: dict[str, MeasuredModel]) -> str:
    """Return the costs of a row and a key, for each model."""
    rows = [
        [
            f"`{name}`",
            format_two_digits(model.seconds_per_row * 1e6),
            format_two_digits(model.seconds_per_key * 1e6),
            format_two_digits(1 / model.seconds_per_row),
            format_two_digits(BATCH_ROWS / model.full_batch_s / model.n_cores),
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
    return format_table(heading, rows)


def make_core_table(models: dict[str, MeasuredModel]) -> str:
    """Return what a day takes, by model, keys and interval."""
    rows = []
    for name, model in models.items():
        for keys in KEY_COUNTS:
            cells = []
            for interval in BATCH_INTERVALS_S:
                hours = model.compute_core_seconds(keys, interval) / 3600
                cells += [
                    format_two_digits(HEADROOM_FACTOR * hours / 24),
                    format_two_digits(hours),
                    format_two_digits(hours * CORE_HOUR_DOLLARS),
                ]
            rows.append([f"`{name}`", format_power_of_ten(keys), *cells])
    heading = ["model", "keys"]
    for interval in BATCH_INTERVALS_S:
        heading += [f"cores, every {interval} s", "core-hours", "dollars"]
    points, table = format_power_of_ten(N_POINTS_PER_DAY), format_table(heading, rows, words=2)
    return f"For {points} points, cores with headroom {HEADROOM_FACTOR}, core-hours and dollars without:\n\n{table}"


def make_state_sections(models: dict[str, MeasuredModel]) -> list[str]:
    """Return memory, state store and shuffle."""
    rows = []
    for name, model in models.items():
        for keys in KEY_COUNTS:
            written = keys * model.written_bytes_per_key
            days = [format_bytes(written * DAY_S / interval) for interval in BATCH_INTERVALS_S]
            rows.append(
                [
                    f"`{name}`",
                    format_power_of_ten(keys),
                    format_bytes(N_STATE_COPIES * keys * model.state_bytes_per_key),
                    f"{math.ceil(N_STATE_COPIES * keys * model.state_bytes_per_key / EXECUTOR_STATE_BYTES)}",
                    format_bytes(written),
                    *days,
                    format_bytes(N_RETAINED_BATCHES * written),
                ]
            )
    heading = [
        "model",
        "keys",
        "in memory",
        "executors",
        "written, a micro-batch",
        *(f"a day, every {interval} s" for interval in BATCH_INTERVALS_S),
        "kept on disk",
    ]
    key_counts = [
        f"{format_two_digits(EXECUTOR_STATE_BYTES / N_STATE_COPIES / model.state_bytes_per_key)} keys of `{name}`"
        for name, model in models.items()
    ]
    row_bytes = max(model.shuffled_bytes_per_row for model in models.values())
    executor, batches, points = format_bytes(EXECUTOR_STATE_BYTES), N_RETAINED_BATCHES, N_POINTS_PER_DAY
    row_digits = format_two_digits(row_bytes)
    per_day, per_second = format_bytes(row_bytes * points), format_bytes(row_bytes * points / DAY_S)
    return [
        f"""States in memory are keys × bytes of a key in Java's memory × {N_STATE_COPIES} versions; with {executor} for
them an executor holds {join_with_or(key_counts)}. A micro-batch writes keys ×
bytes of a key on disk; {batches} times that is kept on disk. In addition, each Python worker holds the bucket that it
is learning.
""",
        format_table(heading, rows, words=2),
        f"""Shuffled are {row_digits} bytes per row (a key, a time and a value, packed): × {points:,} =
{per_day} per day, {per_second} per second, for every learner.
""",
    ]


def format_two_digits(number: float) -> str:
    """Format with two digits.

    >>> format_two_digits(123456.0), format_two_digits(12.6), format_two_digits(0.0346)
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
    unit, scale = next(((unit, scale) for unit, scale in BYTE_UNITS if n_bytes >= scale), BYTE_UNITS[-1])
    return f"{format_two_digits(n_bytes / scale)} {unit}"


def join_with_or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
