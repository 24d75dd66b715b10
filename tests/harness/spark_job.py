"""A job on Spark, to be killed: `python -m harness.spark_job FOLDER OUT CHECKPOINT` until all is read."""

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

from limpet import spark as engine
from limpet.learners import SRA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CORES = 2
# Logs are compacted and states written whole every few batches, so that kills hit that too.
OFTEN = {
    "spark_sql_streaming_minBatchesToRetain": "2",
    "spark_sql_streaming_stateStore_minDeltasForSnapshot": "3",
    "spark_sql_streaming_stateStore_maintenanceInterval": "1s",
    "spark_sql_streaming_fileSink_log_compactInterval": "4",
    "spark_sql_streaming_fileSource_log_compactInterval": "4",
}


def run(spark: SparkSession, folder: str, out: str, checkpoint: str) -> None:
    """Streams the files of a folder, one a micro-batch, until there are no more."""
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    scored = engine.score(rows, "sensor", ["a", "b"], "ts", SRA(memory="compact"), checkpoint=checkpoint)
    writer = scored.writeStream.format("parquet").option("checkpointLocation", checkpoint).outputMode("append")
    writer.trigger(availableNow=True).start(out).awaitTermination()


def end_with(parent: int) -> None:
    """Ends this process when the one that started it has gone, so that nothing is left of a benchmark broken off."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    own = engine.session(CORES, spark_driver_memory="1g", **OFTEN)
    run(own, *sys.argv[1:])
    own.stop()


# Kills a job on Spark again and again: all of its processes, or the Java or the Python of its driver alone.

FURTHER = (1, 1, 2)  # batches until a kill comes
PATIENCE = 30.0  # seconds for the processes that were not killed, to find that they are alone
LONGEST = 600.0
STARTING, WITHIN, BETWEEN = "starting", "within a batch", "between batches"
MOMENTS = (WITHIN, STARTING, BETWEEN, WITHIN, WITHIN)
TARGETS = ("all", "java", "python")


@dataclass
class Job:
    """`spark_job` on a folder of files; its output, its checkpoint and its log are in a folder of its own."""

    source: Path
    folder: Path
    starts_in: float = 5.0
    """Seconds until its first batch, about."""
    takes: float = 0.5
    """Seconds of a batch, about."""
    kills: list[str] = field(default_factory=list)
    """When each kill came."""

    @property
    def out(self) -> Path:
        """Its answers."""
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        """What it goes on from."""
        return self.folder / "checkpoint"

    def run(self) -> None:
        """Lets it come to its end, and notes how long it takes."""
        began = time.monotonic()
        with self._started() as process:
            self._wait_until(process, lambda: self._last("offsets") >= 0)
            self.starts_in = time.monotonic() - began
            code = process.wait(LONGEST)
            self.takes = (time.monotonic() - began - self.starts_in) / (self._last("commits") + 1)
        if code != 0:
            raise RuntimeError(f"the job ended with {code}: {self._log.read_text()[-3000:]}")

    def run_with_kills(self, kills: int, rng: random.Random) -> None:
        """Kills it so many times, unless it comes to its end before; each time it is started again."""
        for _, moment, target in zip(range(kills), itertools.cycle(MOMENTS), itertools.cycle(TARGETS), strict=False):
            with self._started() as process:
                if not self._wait(process, moment, rng):
                    return
                at_work = WITHIN if self._last("offsets") > self._last("commits") else BETWEEN
                self.kills.append(STARTING if moment == STARTING else at_work)
                _kill(process, target)

    def _wait(self, process: subprocess.Popen[bytes], moment: str, rng: random.Random) -> bool:
        """Until the moment of a kill; False if the job comes to its end before."""
        if moment == STARTING:
            time.sleep(rng.uniform(0.0, self.starts_in))
        else:
            done = self._last("commits") + rng.choice(FURTHER)
            self._wait_until(process, lambda: self._last("commits") >= done)
            if moment == WITHIN:
                self._wait_until(process, lambda: self._last("offsets") > self._last("commits"))
                time.sleep(rng.uniform(0.0, self.takes))
        return process.poll() is None

    def _wait_until(self, process: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
        while process.poll() is None and not is_so():
            time.sleep(0.001)

    def _last(self, log: str) -> int:
        """The batch that this log of the checkpoint has last; "offsets": what has begun, "commits": what is done."""
        with suppress(FileNotFoundError):
            return max((int(name) for name in os.listdir(self.checkpoint / log) if name.isdigit()), default=-1)
        return -1

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @contextmanager
    def _started(self) -> Iterator[subprocess.Popen[bytes]]:
        """Starts it, in a session of its own; nothing of it is left at the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        places = map(str, (self.source, self.out, self.checkpoint))
        with self._log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "harness.spark_job", *places],
                stdout=file,
                stderr=file,
                env=os.environ | {"LIMPET_QUIET": "1"},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _kill(process, "all")
            process.wait()


def _kill(process: subprocess.Popen[bytes], target: str) -> None:
    """kill -9 of all processes of a session, or of those of a kind: the others are waited for, and then killed too."""
    members = members_of(process.pid)
    chosen = [pid for pid, name in members.items() if target == "all" or (name == "java") == (target == "java")]
    if target == "python":
        chosen = [process.pid]
    _kill_each(chosen or [process.pid])
    until = time.monotonic() + (PATIENCE if target != "all" else 0.0)
    while process.poll() is None or members_of(process.pid):
        if time.monotonic() > until:
            _kill_each(list(members_of(process.pid)))
        time.sleep(0.01)


def _kill_each(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def members_of(session: int) -> dict[int, str]:
    """The processes of a session with their names, as the kernel tells them; those that have ended are none."""
    found = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        with suppress(OSError):
            if entry.name.isdigit():
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
                state, _, _, own, *_ = rest.split()
                if int(own) == session and state != "Z":
                    found[int(entry.name)] = name
    return found
