"""A session of Spark on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtraError
from holdfast.extras import require_installed
from holdfast.threads import n_threads as cores_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALHOST = "127.0.0.1"
LOCAL_MASTER_PATTERN = re.compile(
    r"local(?:\[(\d+|\*)(?:\s*,\s*\d+)?\])?"
)  # and how often a task may fail; not local-cluster[…]
JAVA_MISSING = (
    "Spark needs Java 17 or newer, and none was found: on Debian and Ubuntu, apt-get install openjdk-17-jre-headless; "
    "elsewhere install a JRE and set JAVA_HOME to its folder"
)


def session(cores: int | None = None, **settings: str) -> SparkSession:
    """A session on this machine alone, or the one that is there already.

    cores: on how many cores, by default all. settings: of Spark, their names with _ for each dot, such as
        spark_driver_memory="8g"; those that a session is begun with have no effect on one that is there already.
    """
    return make_session(
        "local[*]" if cores is None else f"local[{cores}]",
        {name.replace("_", "."): value for name, value in settings.items()},
    )


def make_session(master: str, settings: Mapping[str, str]) -> SparkSession:
    """A session at an address, such as local[4] or spark://host:7077, with settings by Spark's own names."""
    check_spark_installed()
    from pyspark.sql import SparkSession

    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.log.level": "ERROR",
    }
    if local := LOCAL_MASTER_PATTERN.fullmatch(master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", LOCALHOST)
        n_cores_text = local[1] or "1"
        n = cores_here() if n_cores_text == "*" else int(n_cores_text)
        master = master.replace("*", str(n), 1)  # Java counts all cores, also those that this process may not use
        defaults |= {
            "spark.driver.host": LOCALHOST,
            "spark.driver.bindAddress": LOCALHOST,
            "spark.sql.shuffle.partitions": str(n),
        }
    builder = SparkSession.builder.master(master).appName("holdfast")
    for name, value in (defaults | dict(settings)).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_spark_installed() -> None:
    """Says what to install where PySpark or Java is missing."""
    require_installed("Spark", "spark", "pyspark", "pandas", "pyarrow")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and os.access(os.path.join(home, "bin", "java"), os.X_OK))):
        raise MissingExtraError(JAVA_MISSING)
