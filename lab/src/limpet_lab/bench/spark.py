"""Fleets on Spark: rows per second, against a pass-through on the same plan, by model, keys and buckets; bytes kept."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.spark_session import peak_bytes, spark_session
from limpet import spark as engine
from limpet.fleet import Fleet
from limpet.spark.arrow import ALARMS_COLUMN, alarm_type, output_columns
from limpet.spark.checkpoint import open_checkpoint
from limpet.spark.job_spec import DEFAULT_BUCKETS, JobSpec
from limpet.spark.partition_state import StateValue, to_state_value
from limpet.spark.schema import OUTPUT_TYPES, make_job_spec
from limpet.spark.score import process_stream
from limpet.spark.udfs import StatefulTask
from limpet_lab.bench._measurement import Figure, format_power_of_ten
from limpet_lab.bench._timing import measure_best_times
from limpet_lab.bench._workloads import StreamKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# A query of Spark's that is fed one file at a time.

SCHEMA = "sensor bigint, ts timestamp, value double"
N_ROW_GROUPS = 8  # of rows in a file: Spark shares them out among its cores
TRIGGER_INTERVAL = "200 milliseconds"  # between two looks for a new file


def write_files(folder: Path, sizes: Sequence[int], keys: int) -> list[Path]:
    """Write files of these numbers of rows: all keys equally often, times that grow."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    rng, paths, first = np.random.default_rng(keys), [], 0
    for index, rows in enumerate(sizes):
        moments = np.datetime64("2026-01-01", "us") + (first + np.arange(rows)).astype("timedelta64[us]")
        columns = {
            "sensor": rng.permutation(np.resize(np.arange(keys), rows)),
            "ts": pyarrow.array(moments).cast(pyarrow.timestamp("us", "UTC")),
            "value": rng.normal(size=rows),
        }
        paths.append(folder / f"{index:04}.parquet")
        pyarrow.parquet.write_table(pyarrow.table(columns), paths[-1], row_group_size=-(-rows // N_ROW_GROUPS))
        first += rows
    return paths


@dataclass
class FileQuery:
    """A running query with its files and its checkpoint in one folder; its results are discarded."""

    folder: Path
    query: Any

    @classmethod
    def start(cls, spark: SparkSession, folder: Path, score: Callable[[DataFrame, str], DataFrame]) -> FileQuery:
        """Start a query; score: computes the results from the rows and the address of the checkpoint."""
        (folder / "in").mkdir(parents=True)
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        checkpoint = str(folder / "checkpoint")
        writer = score(rows, checkpoint).writeStream.format("noop").option("checkpointLocation", checkpoint)
        return cls(folder, writer.trigger(processingTime=TRIGGER_INTERVAL).start())

    def process_file(self, path: Path) -> float:
        """Process a micro-batch of one file; return its seconds, from finding the file to the commit."""
        n_reports = len(self._progress)
        os.link(path, self.folder / "in" / path.name)
        self.query.processAllAvailable()
        while len(self._progress) == n_reports:  # reported a moment later
            time.sleep(0.01)
        return float(self._progress[-1]["durationMs"]["triggerExecution"]) / 1e3

    @property
    def _progress(self) -> list[Any]:
        """Return what Spark reports of the batches so far."""
        return [progress for progress in self.query.recentProgress if progress["numInputRows"]]

    def count_written_bytes(self) -> int:
        """Return the bytes of states that the last batch has added to the checkpoint."""
        deltas = list((self.folder / "checkpoint" / "state").glob("0/*/*.delta"))
        last = max(int(path.stem) for path in deltas)
        return sum(path.stat().st_size for path in deltas if int(path.stem) == last)

    def count_state_bytes(self) -> int:
        """Return the bytes of one version of the states in Java's memory."""
        (operator,) = self._progress[-1]["stateOperators"]
        return int(operator["customMetrics"]["stateOnCurrentVersionSizeBytes"])

    def count_shuffled_bytes(self) -> int:
        """Return the bytes that the last batch has sent from the tasks that read to those that learn."""
        return _count_shuffled_bytes(self.query._jsq.streamingQuery().lastExecution().executedPlan())

    def stop(self) -> None:
        """End the query."""
        self.query.stop()


def _count_shuffled_bytes(node: Any) -> int:
    children = node.children()
    below = sum(_count_shuffled_bytes(children.apply(nth)) for nth in range(children.size()))
    metrics = node.metrics()
    n_bytes = metrics.apply("shuffleBytesWritten").value() if metrics.contains("shuffleBytesWritten") else 0
    return int(n_bytes) + below


# What the learning is compared with in Spark's plan: nothing at all, and one learner for each key.

SCORED_SCHEMA = "sensor bigint, ts timestamp, value double, score double, rejected boolean"
STATE_SCHEMA = "learner binary"


class PassThrough(StatefulTask):
    """A task that learns nothing: it returns the same rows, and reads and writes the same states."""

    def process_partition(self, bucket: int, table: Any, state: Any) -> tuple[Any, StateValue]:
        """Return the rows of a bucket with columns of constants, and its unchanged state."""
        plan = self.load_spec()
        kept_state: StateValue = (
            tuple(state.get) if state.exists else to_state_value(self.load_partition(plan, bucket, state))
        )
        return append_constants(table, plan), kept_state


def append_constants(table: Any, plan: JobSpec) -> Any:
    """Return the table with the columns of the results."""
    import pyarrow

    n = len(table)
    constants = {"double": pyarrow.array(np.zeros(n)), "boolean": pyarrow.array(np.zeros(n, np.bool_))}
    for name in output_columns(plan.is_auto, plan.time is not None):
        column = pyarrow.nulls(n, alarm_type()) if name == ALARMS_COLUMN else constants[OUTPUT_TYPES[name]]
        table = table.append_column(plan.prefix + name, column)
    return table


@dataclass(frozen=True)
class KeyProcessor:
    """For applyInPandasWithState with a group for each key: its state is its learner's bytes.

    first: the bytes of a learner that has started.
    """

    learner_bytes: bytes

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Return the rows of one key with their results."""
        import pandas

        from limpet.learners import from_bytes

        learner: Any = from_bytes(bytes(state.get[0]) if state.exists else self.learner_bytes)
        warnings.simplefilter("ignore", FutureWarning)  # of Spark's own joining of frames
        frame = pandas.concat(list(frames)).sort_values("ts", kind="stable")
        trace = learner.process(frame["value"].to_numpy())
        state.update((learner.to_bytes(),))
        yield frame.assign(score=trace.score, rejected=trace.rejected)


N_CORES = 2
TITLE = f"local[{N_CORES}], micro-batches of one Parquet file, results discarded; all streams have started"
PLAIN_MODEL, COMPACT_MODEL, DETECTOR_MODEL = "SRA(gamma=4, rho=0.01)", 'Detector(memory="compact")', "Detector()"
STREAM_KINDS = {
    PLAIN_MODEL: StreamKind(1, 1, gamma=4.0, rho=0.01),
    COMPACT_MODEL: StreamKind(1, 1, memory="compact"),
    DETECTOR_MODEL: StreamKind(1, 1),
}
COLUMNS: tuple[str, list[str], str] = ("sensor", ["value"], "ts")
BATCH_ROWS = 1_000_000  # of a micro-batch
KEY_COUNTS, BUCKET_COUNTS = (10_000, 100_000, 1_000_000), (16, 64, 256)
N_GOAL_KEYS = 100_000  # keys of which something is claimed
TASKS: dict[str, type[StatefulTask]] = {"learns": StatefulTask, "passes": PassThrough}
SPEED_LABEL, RATIO_LABEL = "rows", "over a pass-through"
FULL_BATCH_LABEL, TENTH_BATCH_LABEL = "a micro-batch", "a micro-batch of a tenth of the rows"
WRITTEN_BYTES_LABEL, STATE_BYTES_LABEL, SHUFFLED_BYTES_LABEL = (
    "states written, each micro-batch",
    "states in Java's memory",
    "shuffled",
)
N_WARMUP_BATCHES, N_TIMED_BATCHES = 1, 3  # micro-batches of each, alternating
N_SINGLE_KEYS = 10_000  # keys with a group for each


@dataclass(frozen=True)
class Sizes:
    """Sizes of a run. reported_case: keys and buckets for which every figure is reported, for each model."""

    rows: int
    keys: Sequence[int]
    buckets: Sequence[int]
    reported_case: tuple[int, int]
    models: Sequence[str]
    single_keys: int
    timed_batches: int
    memory: str


FULL_SIZES = Sizes(
    BATCH_ROWS,
    KEY_COUNTS,
    BUCKET_COUNTS,
    (N_GOAL_KEYS, DEFAULT_BUCKETS),
    (COMPACT_MODEL, DETECTOR_MODEL),
    N_SINGLE_KEYS,
    N_TIMED_BATCHES,
    "6g",
)
QUICK_SIZES = Sizes(20_000, (1000,), (4,), (1000, 4), (COMPACT_MODEL,), 100, 1, "2g")


def measure(quick: bool) -> list[Figure]:
    """Measure all cases in one session."""
    sizes = QUICK_SIZES if quick else FULL_SIZES
    with tempfile.TemporaryDirectory() as name, spark_session(N_CORES, sizes.memory) as spark:
        bench = SparkBenchmark(spark, Path(name), sizes)
        if not quick:
            bench.warm_up()
        figures = []
        for keys in sizes.keys:
            for buckets in sizes.buckets:
                figures += bench.compare_with_pass_through(PLAIN_MODEL, keys, buckets)
        figures += measure_memory(f"{format_power_of_ten(max(sizes.keys))} keys")
        for model in sizes.models:
            figures += bench.compare_with_pass_through(model, *sizes.reported_case)
        return [*figures, *bench.measure_single_keys(), *bench.measure_batch()]


def format_case(model: str, keys: int, buckets: int = DEFAULT_BUCKETS) -> str:
    """Return the name of a case in the figures of the streaming plan."""
    return f"{model}, {format_power_of_ten(keys)} keys, {buckets} buckets"


class SparkBenchmark:
    """A session, and a temporary folder."""

    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes) -> None:
        self.spark, self.folder, self.sizes = spark, folder, sizes
        self._files: dict[tuple[int, int], list[Path]] = {}

    def get_files(self, keys: int, rows: int) -> list[Path]:
        """Return the files of a number of keys, written once: first full ones, then ones with a tenth of the rows."""
        if (keys, rows) not in self._files:
            timed = self.sizes.timed_batches
            sizes = [rows] * (N_WARMUP_BATCHES + timed) + [rows // 10] * timed
            self._files[keys, rows] = write_files(self.folder / f"{keys}-{rows}", sizes, keys)
        return self._files[keys, rows]

    def get_full_files(self, keys: int, rows: int) -> list[Path]:
        """Return the files with all rows."""
        return self.get_files(keys, rows)[: N_WARMUP_BATCHES + self.sizes.timed_batches]

    def warm_up(self) -> None:
        """Let Java compile what runs often, and Python's processes start."""
        self.measure_times(PLAIN_MODEL, self.sizes.keys[0], self.sizes.buckets[0])

    def compare_with_pass_through(self, model: str, keys: int, buckets: int) -> list[Figure]:
        """Return rows per second, their ratio to a pass-through, the bytes written, and the bytes shuffled."""
        times, rows, name = self.measure_times(model, keys, buckets), self.sizes.rows, format_case(model, keys, buckets)
        figures = [
            Figure(f"{name}: {SPEED_LABEL}", rows / times["learns"], "per second"),
            Figure(
                f"{name}: {RATIO_LABEL}",
                times["passes"] / times["learns"],
                "×",
                at_least=0.5 if keys == N_GOAL_KEYS else None,
            ),
            Figure(f"{name}: {WRITTEN_BYTES_LABEL}", times["written"] / keys, "bytes per key"),
        ]
        if (keys, buckets) == self.sizes.reported_case:
            figures += [
                Figure(f"{name}: {FULL_BATCH_LABEL}", times["learns"], "s"),
                Figure(f"{name}: {TENTH_BATCH_LABEL}", times["short"], "s"),
                Figure(f"{name}: {STATE_BYTES_LABEL}", times["held"] / keys, "bytes per key"),
                Figure(f"{name}: {SHUFFLED_BYTES_LABEL}", times["shuffled"] / rows, "bytes per row"),
            ]
        return figures

    def measure_times(self, model: str, keys: int, buckets: int) -> dict[str, float]:
        """Return seconds of the best micro-batch of each task, and the bytes that it writes, holds and shuffles.

        passed on: what the pass-through holds, which is as much.
        """
        fleet, folder = STREAM_KINDS[model].make_fleet(range(keys)), self.folder / "flows"
        flows = {
            name: FileQuery.start(self.spark, folder / name, partial(_score_stream, fleet, buckets, learn))
            for name, learn in TASKS.items()
        }
        seconds_by_task = dict.fromkeys((*flows, "short"), float("inf"))
        try:
            for index, path in enumerate(self.get_full_files(keys, self.sizes.rows)):
                for name, flow in flows.items():
                    batch_seconds = flow.process_file(path)
                    seconds_by_task[name] = (
                        min(seconds_by_task[name], batch_seconds)
                        if index >= N_WARMUP_BATCHES
                        else seconds_by_task[name]
                    )
            learns = flows["learns"]
            sizes = {
                "written": learns.count_written_bytes(),
                "held": learns.count_state_bytes(),
                "shuffled": learns.count_shuffled_bytes(),
            }
            sizes["passed on"] = flows["passes"].count_state_bytes()
            if (keys, buckets) == self.sizes.reported_case:
                tenth_files = self.get_files(keys, self.sizes.rows)[N_WARMUP_BATCHES + self.sizes.timed_batches :]
                seconds_by_task["short"] = min(map(learns.process_file, tenth_files))
            return seconds_by_task | sizes
        finally:
            for flow in flows.values():
                flow.stop()
            shutil.rmtree(folder)

    def measure_single_keys(self) -> list[Figure]:
        """Measure a group and a state for each key, ten rows of each in a batch."""
        keys = self.sizes.single_keys
        first = STREAM_KINDS[PLAIN_MODEL].make_started_learner().to_bytes()
        flow = FileQuery.start(self.spark, self.folder / "one by one", partial(_score_by_key, first))
        try:
            seconds = min([flow.process_file(path) for path in self.get_full_files(keys, 10 * keys)][N_WARMUP_BATCHES:])
        finally:
            flow.stop()
        return [
            Figure(
                f"{PLAIN_MODEL}, {format_power_of_ten(keys)} keys, a group for each: rows",
                10 * keys / seconds,
                "per second",
            )
        ]

    def measure_batch(self) -> list[Figure]:
        """Measure the batch plan, on all files at once; there the streams start as well."""
        keys, rows = self.sizes.reported_case[0], self.sizes.rows
        files = [str(path) for path in self.get_full_files(keys, rows)]
        frame = engine.score(
            self.spark.read.schema(SCHEMA).parquet(*files), *COLUMNS, STREAM_KINDS[PLAIN_MODEL].make_learner()
        )
        job = frame.write.format("noop").mode("overwrite").save
        seconds = measure_best_times({"batch": job}, self.sizes.timed_batches)["batch"]
        name = f"{PLAIN_MODEL}, {format_power_of_ten(keys)} keys, a batch of {len(files) * rows:,} rows"
        return [Figure(f"{name}: rows", len(files) * rows / seconds, "per second")]


def _score_stream(fleet: Fleet, buckets: int, task: type[StatefulTask], rows: DataFrame, checkpoint: str) -> DataFrame:
    """Score by the streaming plan, with initial states from a fleet."""
    plan = make_job_spec(rows, *COLUMNS, fleet.learner, buckets=buckets)
    return process_stream(rows, open_checkpoint(rows.sparkSession, checkpoint, plan, fleet), task)


def _score_by_key(first: bytes, rows: DataFrame, _: str) -> DataFrame:
    groups = rows.groupBy("sensor")
    return groups.applyInPandasWithState(KeyProcessor(first), SCORED_SCHEMA, STATE_SCHEMA, "append", "NoTimeout")


def measure_memory(name: str) -> list[Figure]:
    """Return the peak memory of Spark's processes; empty where the system does not report it."""
    peaks = peak_bytes()
    return [Figure(f"{name}: memory of {process}, at most", peak / 1e6, "MB") for process, peak in peaks.items()]
