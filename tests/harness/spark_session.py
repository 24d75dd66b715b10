"""A session of Spark for a benchmark, and nothing of it left afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(cores: int, memory: str) -> Iterator[SparkSession]:
    """The session that is there already, or one that is stopped at the end, its Java too."""
    from limpet.spark.session import check_spark_installed, session

    check_spark_installed()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    theirs = SparkSession.getActiveSession()
    if theirs is not None:
        yield theirs
        return
    own = session(cores, spark_driver_memory=memory)
    try:
        yield own
    finally:
        own.stop()
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        gateway.shutdown()
        gateway.proc.stdin.close()  # at which it ends
        gateway.proc.wait()


def peak_bytes() -> dict[str, int]:
    """The most memory that Spark's Java and the largest of its Python workers have had; empty if that is not known."""
    from pyspark import SparkContext

    java = str(SparkContext._gateway.proc.pid)
    peaks: dict[str, int] = {}
    parents: dict[str, str] = {}
    told: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, KeyError):
            lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            parents[lines["Pid"].strip()] = lines["PPid"].strip()
            told[lines["Pid"].strip()] = int(lines["VmHWM"].split()[0]) * 1024
    for pid, peak in told.items():
        what = "Java" if pid == java else "a Python worker" if parents.get(parents[pid]) == java else ""
        if what:
            peaks[what] = max(peaks.get(what, 0), peak)
    return peaks
