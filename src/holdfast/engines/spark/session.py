"""A session of Spark on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtraError
from holdfast.extras import require
from holdfast.threads import cores as cores_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = "127.0.0.1"
LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*\d+)?\])?")  # and how often a task may fail; not local-cluster[…]
JAVA_MISSING = (
    "Spark needs Java 17 or newer, and none was found: on Debian and Ubuntu, apt-get install openjdk-17-jre-headless; "
    "elsewhere install a JRE and set JAVA_HOME to its folder"
)


def session(cores: int | None = None, **settings: str) -> SparkSession:
    """A session on this machine alone, or the one that is there already.

    cores: on how many cores, by default all. settings: of Spark, their names with _ for each dot, such as
        spark_driver_memory="8g"; those that a session is begun with have no effect on one that is there already.
    """
    return session_at(
        "local[*]" if cores is None else f"local[{cores}]",
        {name.replace("_", "."): value for name, value in settings.items()},
    )


def session_at(master: str, settings: Mapping[str, str]) -> SparkSession:
    """A session at an address, such as local[4] or spark://host:7077, with settings by Spark's own names."""
    require_spark()
    from pyspark.sql import SparkSession

    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.log.level": "ERROR",
    }
    if local := LOCAL.fullmatch(master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", HERE)
        said = local[1] or "1"
        n = cores_here() if said == "*" else int(said)
        master = master.replace("*", str(n), 1)  # Java counts all cores, also those that this process may not use
        usual |= {
            "spark.driver.host": HERE,
            "spark.driver.bindAddress": HERE,
            "spark.sql.shuffle.partitions": str(n),
        }
    builder = SparkSession.builder.master(master).appName("holdfast")
    for name, value in (usual | dict(settings)).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def require_spark() -> None:
    """Says what to install where PySpark or Java is missing."""
    require("Spark", "spark", "pyspark", "pandas", "pyarrow")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and os.access(os.path.join(home, "bin", "java"), os.X_OK))):
        raise MissingExtraError(JAVA_MISSING)
