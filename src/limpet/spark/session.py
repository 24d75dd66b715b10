"""A session of Spark on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet._optional import require_installed
from limpet._parallel import n_threads as cores_here
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.spark._errors import extract_error_line

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
    builder = SparkSession.builder.master(master).appName("limpet")
    for name, value in (defaults | dict(settings)).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_spark_installed() -> None:
    """Says what to install where PySpark or Java is missing."""
    require_installed("Spark", "spark", "pyspark", "pandas", "pyarrow")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and os.access(os.path.join(home, "bin", "java"), os.X_OK))):
        raise MissingExtraError(JAVA_MISSING)


# A session for a command: the one that is there, or one of its own, which keeps quiet.

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
NOISE_PREFIXES = (
    *("WARNING: Using incubator", "Using Spark's default", "Setting ", "To adjust logging", ":: ", "\t", "Ivy "),
    *("Error: Could not", "Error: A fatal"),
)


@contextmanager
def open_session(master: str, settings: Mapping[str, str], log: Path | None) -> Iterator[SparkSession]:
    """A session; it is stopped in the end, unless it was there before."""

    check_spark_installed()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with ExitStack() as stack:
        log_path = log
        if log_path is None:
            temp_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="limpet-"))
            log_path = Path(temp_dir) / "spark.log"
        try:
            with redirect_stderr(log_path):
                session = make_session(master, settings)
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            raise InvalidInputError(
                f"Spark did not start: {_find_start_error(log_path) or extract_error_line(str(error))}"
            ) from None
        try:
            yield session
        finally:
            with suppress(ConnectionError):  # its process is gone
                session.stop()


def session_for(values: Mapping[str, Any]) -> AbstractContextManager[SparkSession]:
    """A session with the settings of Spark that the command was given."""
    return open_session(values["master"], make_spark_conf(values), values["spark_log"])


def make_spark_conf(values: Mapping[str, Any]) -> dict[str, str]:
    """The settings of Spark that the command was given."""
    settings = {"spark.driver.memory": values["driver_memory"]}
    if values["packages"]:
        settings["spark.jars.packages"] = values["packages"]
    if values.get("to") == "delta":
        settings |= DELTA_CONF
    return settings | parse_pairs("--conf", values["conf"])


def parse_pairs(flag: str, items: Sequence[str] | None) -> dict[str, str]:
    """Settings of the form NAME=VALUE.

    >>> pairs("--conf", ["spark.a=b=c"])
    {'spark.a': 'b=c'}
    """
    result = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not name.strip() or not equals:
            raise InvalidInputError(f"{flag}: expected NAME=VALUE, got {item!r}")
        result[name.strip()] = value.strip()
    return result


@contextmanager
def redirect_stderr(path: Path) -> Iterator[None]:
    """What is begun inside says to a file what it says on standard error, also later: Java has no ear for less."""
    try:
        target_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise InvalidInputError(f"--spark-log: {path} cannot be written: {(error.strerror or '').lower()}") from None
    sys.stderr.flush()
    saved_fd = os.dup(2)
    try:
        os.dup2(target_fd, 2)
        yield
    finally:
        os.dup2(saved_fd, 2)
        os.close(saved_fd)
        os.close(target_fd)


def _find_start_error(log: Path) -> str:
    """Why Spark did not start, as far as its log tells: mistakes first."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    relevant = [line for line in lines if line.strip() and not line.startswith(NOISE_PREFIXES)]
    errors = [line for line in relevant if "Exception" in line or "rror" in line]
    return extract_error_line("\n".join(errors or relevant)) if relevant else ""
