"""A session of Spark on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MISSING = (
    "Spark needs Java 17 or newer, and none was found: on Debian and Ubuntu, apt-get install openjdk-17-jre-headless; "
    "elsewhere install a JRE and set JAVA_HOME to its folder"
)


def session(cores: int | None = None, **settings: str) -> SparkSession:
    """A session on this machine alone, or the one that is there already.

    cores: on how many cores, by default all. settings: of Spark, their names with _ for each dot, such as
        spark_driver_memory="8g"; those that a session is begun with have no effect on one that is there already.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("Spark needs PySpark: pip install 'holdfast[spark]'") from None
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    n = cores or len(os.sched_getaffinity(0))
    usual = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(n),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(f"local[{n}]").appName("holdfast")
    for name, value in (usual | {name.replace("_", "."): value for name, value in settings.items()}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def require_java() -> None:
    """Says what to install where there is no Java."""
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and os.access(os.path.join(home, "bin", "java"), os.X_OK))):
        raise MissingExtraError(JAVA_MISSING)
