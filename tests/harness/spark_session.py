"""A session of Spark for a benchmark, whose processes end with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(cores: int, memory: str) -> Iterator[SparkSession]:
    """Return the active session, or a new one that is stopped at the end with its JVM."""
    from limpet.spark.session import check_spark_installed, session

    check_spark_installed()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    started = session(cores, spark_driver_memory=memory)
    try:
        yield started
    finally:
        started.stop()
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends then
        gateway.proc.wait()


def peak_bytes() -> dict[str, int]:
    """Return the peak memory of Spark's JVM and of its largest Python worker; empty if unknown."""
    from pyspark import SparkContext

    java = str(SparkContext._gateway.proc.pid)
    peaks: dict[str, int] = {}
    parents: dict[str, str] = {}
    peak_by_pid: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, KeyError):
            lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            parents[lines["Pid"].strip()] = lines["PPid"].strip()
            peak_by_pid[lines["Pid"].strip()] = int(lines["VmHWM"].split()[0]) * 1024
    for pid, peak in peak_by_pid.items():
        kind = "Java" if pid == java else "a Python worker" if parents.get(parents[pid]) == java else ""
        if kind:
            peaks[kind] = max(peaks.get(kind, 0), peak)
    return peaks
