"""A session of Spark for a benchmark, and nothing of it left afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(cores: int, memory: str) -> Iterator[SparkSession]:
    """The session that is there already, or one that is stopped at the end, its Java too."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from holdfast.engines.spark import session

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
