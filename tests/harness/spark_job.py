"""A job on Spark that can be killed, and the processes that kill it.

`python -m harness.spark_job FOLDER OUT CHECKPOINT` scores the files of a folder to the end.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from limpet import spark as ls
from limpet.learners import Detector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CORES = 2
# Compact logs and write full states every few batches, so that kills also hit these.
MAINTENANCE_SETTINGS = {
    "spark_sql_streaming_minBatchesToRetain": "2",
    "spark_sql_streaming_stateStore_minDeltasForSnapshot": "3",
    "spark_sql_streaming_stateStore_maintenanceInterval": "1s",
    "spark_sql_streaming_fileSink_log_compactInterval": "4",
    "spark_sql_streaming_fileSource_log_compactInterval": "4",
}


def run(spark: SparkSession, folder: str, out: str, checkpoint: str) -> None:
    """Score the files of a folder as a stream, one per micro-batch, to the end."""
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    scored = ls.score(rows, "sensor", ["a", "b"], "ts", Detector(memory="compact"), checkpoint=checkpoint)
    writer = scored.writeStream.format("parquet").option("checkpointLocation", checkpoint).outputMode("append")
    writer.trigger(availableNow=True).start(out).awaitTermination()


def exit_with_parent(parent: int) -> None:
    """Exit when the parent process has ended, so that an aborted benchmark leaves no process."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=exit_with_parent, args=(os.getppid(),), daemon=True).start()
    session = ls.session(CORES, spark_driver_memory="1g", **MAINTENANCE_SETTINGS)
    run(session, *sys.argv[1:])
    session.stop()


# Kill a job repeatedly: all of its processes, only the JVM, or only the Python process of the driver.

BATCHES_BEFORE_KILL = (1, 1, 2)
EXIT_TIMEOUT_S = 30.0  # for the processes that were not killed
JOB_TIMEOUT_S = 600.0
STARTING, WITHIN, BETWEEN = "starting", "within a batch", "between batches"
MOMENTS = (WITHIN, STARTING, BETWEEN, WITHIN, WITHIN)
TARGETS = ("all", "java", "python")


@dataclass
class Job:
    """A job on a folder of files, with output, checkpoint and log in another folder."""

    source: Path
    folder: Path
    starts_in: float = 5.0
    """Approximate seconds until its first batch."""
    takes: float = 0.5
    """Approximate seconds per batch."""
    kills: list[str] = field(default_factory=list)
    """The moment of each kill."""

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint."""
        return self.folder / "checkpoint"

    def run(self) -> None:
        """Run the job to its end, and measure its durations."""
        began = time.monotonic()
        with self._run_process() as process:
            self._wait_until(process, lambda: self._last_batch("offsets") >= 0)
            self.starts_in = time.monotonic() - began
            code = process.wait(JOB_TIMEOUT_S)
            self.takes = (time.monotonic() - began - self.starts_in) / (self._last_batch("commits") + 1)
        if code != 0:
            raise RuntimeError(f"the job ended with {code}: {self._log.read_text()[-3000:]}")

    def run_with_kills(self, kills: int, rng: random.Random) -> None:
        """Kill and restart the job so many times, or until it ends."""
        for _, moment, target in zip(range(kills), itertools.cycle(MOMENTS), itertools.cycle(TARGETS), strict=False):
            with self._run_process() as process:
                if not self._wait(process, moment, rng):
                    return
                at_work = WITHIN if self._last_batch("offsets") > self._last_batch("commits") else BETWEEN
                self.kills.append(STARTING if moment == STARTING else at_work)
                _kill(process, target)

    def _wait(self, process: subprocess.Popen[bytes], moment: str, rng: random.Random) -> bool:
        """Wait until the moment of a kill; return False if the job ends before."""
        if moment == STARTING:
            time.sleep(rng.uniform(0.0, self.starts_in))
        else:
            done = self._last_batch("commits") + rng.choice(BATCHES_BEFORE_KILL)
            self._wait_until(process, lambda: self._last_batch("commits") >= done)
            if moment == WITHIN:
                self._wait_until(process, lambda: self._last_batch("offsets") > self._last_batch("commits"))
                time.sleep(rng.uniform(0.0, self.takes))
        return process.poll() is None

    def _wait_until(self, process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        while process.poll() is None and not condition():
            time.sleep(0.001)

    def _last_batch(self, log: str) -> int:
        """Return the last batch in a log of the checkpoint: "offsets" of batches begun, "commits" of batches done."""
        with suppress(FileNotFoundError):
            return max((int(name) for name in os.listdir(self.checkpoint / log) if name.isdigit()), default=-1)
        return -1

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @contextmanager
    def _run_process(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start the job in a new session; all of its processes end with the context."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = map(str, (self.source, self.out, self.checkpoint))
        with self._log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "harness.spark_job", *paths],
                stdout=file,
                stderr=file,
                env=os.environ | {"LIMPET_QUIET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _kill(process, "all")
            process.wait()


def _kill(process: subprocess.Popen[bytes], target: str) -> None:
    """Kill -9 all processes of a session, or those of a kind; the others are killed after a time-out."""
    members = list_processes(process.pid)
    chosen = [pid for pid, name in members.items() if target == "all" or (name == "java") == (target == "java")]
    if target == "python":
        chosen = [process.pid]
    _kill_each(chosen or [process.pid])
    until = time.monotonic() + (EXIT_TIMEOUT_S if target != "all" else 0.0)
    while process.poll() is None or list_processes(process.pid):
        if time.monotonic() > until:
            _kill_each(list(list_processes(process.pid)))
        time.sleep(0.01)


def _kill_each(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def list_processes(session: int) -> dict[int, str]:
    """Return the names of the running processes of a session by process ID."""
    names = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        with suppress(OSError):
            if entry.name.isdigit():
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
                state, _, _, session_id, *_ = rest.split()
                if int(session_id) == session and state != "Z":
                    names[int(entry.name)] = name
    return names
