"""Start a session of Spark on this machine or at an address."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from limpet._optional import require_installed
from limpet._parallel import n_threads as count_cores
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.spark._errors import extract_error_line, is_spark_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOCALHOST = "127.0.0.1"
# Cores and, ignored, retries of a task; not local-cluster[…].
LOCAL_MASTER_PATTERN = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*\d+)?\])?")
JAVA_MISSING_MESSAGE = (
    "Spark requires Java 17 or newer, which was not found. On Debian and Ubuntu: apt-get install "
    "openjdk-17-jre-headless. Elsewhere install a JRE and set JAVA_HOME to its folder."
)
# Lines that Spark logs at every start.
NOISE_PREFIXES = (
    *("WARNING: Using incubator", "Using Spark's default", "Setting ", "To adjust logging", ":: ", "\t", "Ivy "),
    *("Error: Could not", "Error: A fatal"),
)


def session(cores: int | None = None, **settings: str) -> SparkSession:
    """Start a session on this machine, or return the active one.

    Parameters
    ----------
    cores : int, optional
        Number of cores. Default: all.
    **settings : str
        Properties of Spark with _ for each dot, such as spark_driver_memory="8g". Properties that a session is started
        with have no effect on an active one.

    Returns
    -------
    SparkSession

    Raises
    ------
    MissingExtraError
        If PySpark or Java is missing.
    """
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    return make_session("local[*]" if cores is None else f"local[{cores}]", properties)


def make_session(master: str, properties: Mapping[str, str]) -> SparkSession:
    """Start a session at an address, such as local[4] or spark://host:7077."""
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
        n = count_cores() if local[1] == "*" else int(local[1] or 1)
        master = master.replace("*", str(n), 1)  # Java counts all cores, including those this process may not use
        defaults |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), LOCALHOST)
        defaults["spark.sql.shuffle.partitions"] = str(n)
    builder = SparkSession.builder.master(master).appName("limpet")
    return builder.config(map=defaults | dict(properties)).getOrCreate()


def check_spark_installed() -> None:
    """Raise `MissingExtraError`, with a remedy, if PySpark or Java is missing."""
    require_installed("Spark", "spark", "pyspark", "pandas", "pyarrow")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and os.access(os.path.join(home, "bin", "java"), os.X_OK))):
        raise MissingExtraError(JAVA_MISSING_MESSAGE)


@contextmanager
def open_session(master: str, properties: Mapping[str, str], log: Path | None) -> Iterator[SparkSession]:
    """Start a session and stop it at the end, or use the active one.

    Spark's standard error is written to `log`, or discarded.
    """
    check_spark_installed()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="limpet-") as temp_dir:
        log = log or Path(temp_dir, "spark.log")
        try:
            with redirect_stderr(log):
                session = make_session(master, properties)
        except Exception as error:
            if not is_spark_error(error):
                raise
            reason = _find_start_error(log) or extract_error_line(str(error))
            raise InvalidInputError(f"Spark did not start: {reason.rstrip('. ')}.") from None
        try:
            yield session
        finally:
            with suppress(ConnectionError):  # its process has ended
                session.stop()


def parse_pairs(flag: str, items: Sequence[str] | None) -> dict[str, str]:
    """Parse options of the form NAME=VALUE.

    >>> parse_pairs("--conf", ["spark.a=b=c"])
    {'spark.a': 'b=c'}
    """
    result = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not name.strip() or not equals:
            raise InvalidInputError(f"{flag}: must be NAME=VALUE, got {item!r}.")
        result[name.strip()] = value.strip()
    return result


@contextmanager
def redirect_stderr(path: Path) -> Iterator[None]:
    """Redirect standard error, also of Java, which has no option for all messages."""
    try:
        target_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise InvalidInputError(f"spark_log: must be a writable file, got {path}: {reason}.") from None
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
    """Return the reason why Spark did not start from its log, errors first."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    relevant = [line for line in lines if line.strip() and not line.startswith(NOISE_PREFIXES)]
    errors = [line for line in relevant if "Exception" in line or "rror" in line]
    return extract_error_line("\n".join(errors or relevant)) if relevant else ""
