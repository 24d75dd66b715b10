"""A query of Spark's that is fed one file at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "sensor bigint, ts timestamp, value double"
GROUPS = 8  # of rows in a file: Spark shares them out among its cores
IDLE = "200 milliseconds"  # between two looks for a new file


def write_files(folder: Path, sizes: Sequence[int], keys: int) -> list[Path]:
    """Files of so many rows each, points of many streams as they come: all keys equally often, times that grow."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    rng, paths, first = np.random.default_rng(keys), [], 0
    for nth, rows in enumerate(sizes):
        moments = np.datetime64("2026-01-01", "us") + (first + np.arange(rows)).astype("timedelta64[us]")
        columns = {
            "sensor": rng.permutation(np.resize(np.arange(keys), rows)),
            "ts": pyarrow.array(moments).cast(pyarrow.timestamp("us", "UTC")),
            "value": rng.normal(size=rows),
        }
        paths.append(folder / f"{nth:04}.parquet")
        pyarrow.parquet.write_table(pyarrow.table(columns), paths[-1], row_group_size=-(-rows // GROUPS))
        first += rows
    return paths


@dataclass
class Flow:
    """A query that runs, its files and its checkpoint in a folder of its own; what it answers goes nowhere."""

    folder: Path
    query: Any

    @classmethod
    def begun(cls, spark: SparkSession, folder: Path, answers: Callable[[DataFrame, str], DataFrame]) -> Flow:
        """answers: makes of the rows and the address of the checkpoint what is to be computed."""
        (folder / "in").mkdir(parents=True)
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        checkpoint = str(folder / "checkpoint")
        writer = answers(rows, checkpoint).writeStream.format("noop").option("checkpointLocation", checkpoint)
        return cls(folder, writer.trigger(processingTime=IDLE).start())

    def feed(self, path: Path) -> float:
        """A micro-batch of one file; the seconds that it takes, from the look for files to the commit."""
        before = len(self._told)
        os.link(path, self.folder / "in" / path.name)
        self.query.processAllAvailable()
        while len(self._told) == before:  # it is told a moment later
            time.sleep(0.01)
        return float(self._told[-1]["durationMs"]["triggerExecution"]) / 1e3

    @property
    def _told(self) -> list[Any]:
        """What Spark tells of the batches so far."""
        return [one for one in self.query.recentProgress if one["numInputRows"]]

    def written(self) -> int:
        """Bytes of states that the last batch has added to the checkpoint."""
        deltas = list((self.folder / "checkpoint" / "state").glob("0/*/*.delta"))
        last = max(int(path.stem) for path in deltas)
        return sum(path.stat().st_size for path in deltas if int(path.stem) == last)

    def held(self) -> int:
        """Bytes of one version of the states in Java's memory."""
        (operator,) = self._told[-1]["stateOperators"]
        return int(operator["customMetrics"]["stateOnCurrentVersionSizeBytes"])

    def shuffled(self) -> int:
        """Bytes that the last batch has sent from the tasks that read to those that learn."""
        return _shuffled(self.query._jsq.streamingQuery().lastExecution().executedPlan())

    def stop(self) -> None:
        """Ends the query."""
        self.query.stop()


def _shuffled(node: Any) -> int:
    children = node.children()
    below = sum(_shuffled(children.apply(nth)) for nth in range(children.size()))
    metrics = node.metrics()
    own = metrics.apply("shuffleBytesWritten").value() if metrics.contains("shuffleBytesWritten") else 0
    return int(own) + below
