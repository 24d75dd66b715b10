"""`kill -9` at random moments of a job on Spark, compared with a job that was not killed."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.spark_job import BETWEEN, CORES, STARTING, WITHIN, Job
from harness.spark_session import spark_session
from limpet import spark as engine
from limpet.exceptions import CheckpointError
from limpet.spark.session import check_spark_installed
from limpet_lab.bench._measurement import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TITLE = "from Parquet to Parquet, Detector(memory='compact') on text keys; 1 is bit-identical"
N_BATCHES, BATCH_ROWS, N_KEYS = 40, 20_000, 500
N_KILLS, N_KILLS_PER_SIDE = 10, 2
N_OTHER_BUCKETS = 23


def measure(quick: bool) -> list[Figure]:
    """Kill a job repeatedly; and with another number of buckets between two kills."""
    check_spark_installed()
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(0)
        write_input(folder / "in", *((6, BATCH_ROWS // 10, N_KEYS // 10) if quick else (N_BATCHES, BATCH_ROWS, N_KEYS)))
        uninterrupted = Job(folder / "in", folder / "whole")
        uninterrupted.run()
        killed_job, moved_job = (
            Job(folder / "in", folder / name, uninterrupted.starts_in, uninterrupted.takes)
            for name in ("killed", "moved")
        )
        killed_job.run_with_kills(1 if quick else N_KILLS, rng)
        killed_job.run()
        jobs = [("kill -9", killed_job, N_KILLS)]
        if not quick:
            moved_job.run_with_kills(N_KILLS_PER_SIDE, rng)
            while not try_repartition(moved_job):
                moved_job.run_with_kills(1, rng)
            moved_job.run_with_kills(N_KILLS_PER_SIDE, rng)
            moved_job.run()
            jobs += [("kill -9, repartition, kill -9", moved_job, 2 * N_KILLS_PER_SIDE)]
        with spark_session(CORES, "2g") as spark:
            expected = JobOutput.from_job(spark, uninterrupted)
            return [
                figure
                for title, job, n in jobs
                for figure in make_figures(title, job, n, JobOutput.from_job(spark, job), expected)
            ]


def try_repartition(job: Job) -> bool:
    """Repartition the states of a job; return False if a batch is processed and not committed."""
    with spark_session(CORES, "2g") as spark:
        try:
            engine.repartition(spark, job.checkpoint, N_OTHER_BUCKETS)
        except CheckpointError:
            return False
        return True


def write_input(folder: Path, batches: int, rows: int, keys: int, seed: int = 0) -> None:
    """Write a file for each micro-batch: levels that change, outliers, missing values, rows out of order."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    rng, names = np.random.default_rng(seed), np.array([f"sensor-{i:04}" for i in range(keys)])
    for batch in range(batches):
        ids = rng.permutation(batch * rows + np.arange(rows))
        key_indices = rng.integers(keys, size=rows)
        values = rng.normal(key_indices[:, None], 1.0, (rows, 2))
        values[((batch + key_indices) // 7) % 2 == 1] += 6.0
        values[rng.random(rows) < 0.005] += 30.0
        values[rng.random((rows, 2)) < 0.01] = np.nan
        times = np.datetime64("2026-01-01", "us") + (ids * 1_000_003).astype("timedelta64[us]")
        columns = {"id": ids, "sensor": names[key_indices], "ts": times, "a": values[:, 0], "b": values[:, 1]}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{batch:04}.parquet")


@dataclass(frozen=True)
class JobOutput:
    """The results of a job, as Spark reads them, in the order of the input; and the state of each key."""

    ids: Any
    results: Any
    states: dict[Any, bytes]

    @classmethod
    def from_job(cls, spark: SparkSession, job: Job) -> JobOutput:
        """Read the output of a job."""
        table = spark.read.parquet(str(job.out)).toArrow().sort_by("id").combine_chunks()
        fleet = engine.export_fleet(spark, job.checkpoint)
        return cls(table["id"].to_numpy(), table, {key: np.array(fleet[key].state).tobytes() for key in fleet})

    def count_alarms(self) -> int:
        """Return the number of alarms."""
        return len(self.results["alarms"].combine_chunks().flatten())


def make_figures(name: str, job: Job, kills: int, output: JobOutput, expected: JobOutput) -> list[Figure]:
    """Compare a job that was killed with one that was not."""
    what = f"{name}, {len(expected.ids):,} rows"
    return [
        Figure(f"{what}: kills", len(job.kills), "", at_least=kills),
        *(Figure(f"{what}: of these {moment}", job.kills.count(moment)) for moment in (STARTING, WITHIN, BETWEEN)),
        Figure(f"{what}: alarms", output.count_alarms(), "", at_least=1),
        Figure(f"{what}: rows lost", len(np.setdiff1d(expected.ids, output.ids)), "", at_most=0),
        Figure(f"{what}: rows doubled", len(output.ids) - len(np.unique(output.ids)), "", at_most=0),
        Figure(f"{what}: equal results", float(are_tables_equal(output.results, expected.results)), "", 1.0, 1.0),
        Figure(f"{what}: equal states", float(output.states == expected.states), "", 1.0, 1.0),
    ]


def are_tables_equal(left: Any, right: Any) -> bool:
    """Whether two tables are equal, to the last bit."""
    names: Sequence[str] = right.column_names
    return left.column_names == names and all(
        are_columns_equal(left[name].combine_chunks(), right[name].combine_chunks()) for name in names
    )


def are_columns_equal(left: Any, right: Any) -> bool:
    """Whether two columns are equal, NaN for NaN and bit for bit, also within lists and structures."""
    from pyarrow import types

    if left.type != right.type or len(left) != len(right) or not left.is_null().equals(right.is_null()):
        return False
    if types.is_list(left.type):
        same_lengths: bool = left.value_lengths().equals(right.value_lengths())
        return same_lengths and are_columns_equal(left.flatten(), right.flatten())
    if types.is_struct(left.type):
        return all(
            are_columns_equal(left_values, right_values)
            for left_values, right_values in zip(left.flatten(), right.flatten(), strict=True)
        )
    if types.is_floating(left.type):
        left_values, right_values = (np.asarray(column.fill_null(0.0)).tobytes() for column in (left, right))
        return bool(left_values == right_values)
    return bool(left.equals(right))
