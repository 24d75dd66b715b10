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
    """Killed again and again; and with another number of buckets between two kills."""
    check_spark_installed()
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(0)
        write_input(folder / "in", *((6, BATCH_ROWS // 10, N_KEYS // 10) if quick else (N_BATCHES, BATCH_ROWS, N_KEYS)))
        whole = Job(folder / "in", folder / "whole")
        whole.run()
        killed, moved = (
            Job(folder / "in", folder / name, whole.starts_in, whole.takes) for name in ("killed", "moved")
        )
        killed.run_with_kills(1 if quick else N_KILLS, rng)
        killed.run()
        jobs = [("kill -9", killed, N_KILLS)]
        if not quick:
            moved.run_with_kills(N_KILLS_PER_SIDE, rng)
            while not try_repartition(moved):
                moved.run_with_kills(1, rng)
            moved.run_with_kills(N_KILLS_PER_SIDE, rng)
            moved.run()
            jobs += [("kill -9, repartition, kill -9", moved, 2 * N_KILLS_PER_SIDE)]
        with spark_session(CORES, "2g") as spark:
            left = JobOutput.from_job(spark, whole)
            return [
                figure for what, job, n in jobs for figure in make_figures(what, job, n, JobOutput.from_job(spark, job), left)
            ]


def try_repartition(job: Job) -> bool:
    """Moves the states of a job; False if a batch is processed and not committed, which is refused."""
    with spark_session(CORES, "2g") as spark:
        try:
            engine.repartition(spark, job.checkpoint, N_OTHER_BUCKETS)
        except CheckpointError:
            return False
        return True


def write_input(folder: Path, batches: int, rows: int, keys: int, seed: int = 0) -> None:
    """A file for each micro-batch: levels that change, with outliers, gaps, and rows that come out of order."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    rng, names = np.random.default_rng(seed), np.array([f"sensor-{i:04}" for i in range(keys)])
    for batch in range(batches):
        ids = rng.permutation(batch * rows + np.arange(rows))
        of = rng.integers(keys, size=rows)
        values = rng.normal(of[:, None], 1.0, (rows, 2))
        values[((batch + of) // 7) % 2 == 1] += 6.0
        values[rng.random(rows) < 0.005] += 30.0
        values[rng.random((rows, 2)) < 0.01] = np.nan
        moments = np.datetime64("2026-01-01", "us") + (ids * 1_000_003).astype("timedelta64[us]")
        columns = {"id": ids, "sensor": names[of], "ts": moments, "a": values[:, 0], "b": values[:, 1]}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{batch:04}.parquet")


@dataclass(frozen=True)
class JobOutput:
    """The results of a job, as Spark reads them, in the order of the input; and the state of each key."""

    ids: Any
    results: Any
    states: dict[Any, bytes]

    @classmethod
    def from_job(cls, spark: SparkSession, job: Job) -> JobOutput:
        """Reads it."""
        table = spark.read.parquet(str(job.out)).toArrow().sort_by("id").combine_chunks()
        fleet = engine.export_fleet(spark, job.checkpoint)
        return cls(table["id"].to_numpy(), table, {key: np.array(fleet[key].state).tobytes() for key in fleet})

    def count_alarms(self) -> int:
        """Return the number of alarms."""
        return len(self.results["alarms"].combine_chunks().flatten())


def make_figures(name: str, job: Job, kills: int, leftover: JobOutput, whole: JobOutput) -> list[Figure]:
    """Compare a job that was killed with one that was not."""
    what = f"{name}, {len(whole.ids):,} rows"
    return [
        Figure(f"{what}: kills", len(job.kills), "", at_least=kills),
        *(Figure(f"{what}: of these {moment}", job.kills.count(moment)) for moment in (STARTING, WITHIN, BETWEEN)),
        Figure(f"{what}: alarms", leftover.count_alarms(), "", at_least=1),
        Figure(f"{what}: rows lost", len(np.setdiff1d(whole.ids, leftover.ids)), "", at_most=0),
        Figure(f"{what}: rows doubled", len(leftover.ids) - len(np.unique(leftover.ids)), "", at_most=0),
        Figure(f"{what}: equal results", float(are_tables_equal(leftover.results, whole.results)), "", 1.0, 1.0),
        Figure(f"{what}: equal states", float(leftover.states == whole.states), "", 1.0, 1.0),
    ]


def are_tables_equal(left: Any, other: Any) -> bool:
    """Whether two tables are equal, to the last bit."""
    names: Sequence[str] = other.column_names
    return left.column_names == names and all(
        are_columns_equal(left[name].combine_chunks(), other[name].combine_chunks()) for name in names
    )


def are_columns_equal(left: Any, other: Any) -> bool:
    """Whether two columns are equal, NaN for NaN and bit for bit, also within lists and structures."""
    from pyarrow import types

    if left.type != other.type or len(left) != len(other) or not left.is_null().equals(other.is_null()):
        return False
    if types.is_list(left.type):
        same_lengths: bool = left.value_lengths().equals(other.value_lengths())
        return same_lengths and are_columns_equal(left.flatten(), other.flatten())
    if types.is_struct(left.type):
        return all(are_columns_equal(mine, yours) for mine, yours in zip(left.flatten(), other.flatten(), strict=True))
    if types.is_floating(left.type):
        mine, yours = (np.asarray(column.fill_null(0.0)).tobytes() for column in (left, other))
        return bool(mine == yours)
    return bool(left.equals(other))
