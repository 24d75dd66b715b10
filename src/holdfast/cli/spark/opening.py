"""A session for a command: the one that is there, or one of its own, which keeps quiet."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.errors import sensible_line
from holdfast.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
CHATTER = (
    *("WARNING: Using incubator", "Using Spark's default", "Setting ", "To adjust logging", ":: ", "\t", "Ivy "),
    *("Error: Could not", "Error: A fatal"),
)


@contextmanager
def opened_session(master: str, settings: Mapping[str, str], log: Path | None) -> Iterator[SparkSession]:
    """A session; it is stopped in the end, unless it was there before."""
    from holdfast.engines.spark.session import require_spark, session_at

    require_spark()
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    with ExitStack() as open_ones:
        heard = log
        if heard is None:
            room = open_ones.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-"))
            heard = Path(room) / "spark.log"
        try:
            with standard_error_to(heard):
                session = session_at(master, settings)
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            raise BadInputError(f"Spark did not start: {_reason(heard) or sensible_line(str(error))}") from None
        try:
            yield session
        finally:
            with suppress(ConnectionError):  # its process is gone
                session.stop()


def session_for(values: Mapping[str, Any]) -> AbstractContextManager[SparkSession]:
    """A session with the settings of Spark that the command was given."""
    return opened_session(values["master"], settings_of_spark(values), values["spark_log"])


def settings_of_spark(values: Mapping[str, Any]) -> dict[str, str]:
    """The settings of Spark that the command was given."""
    settings = {"spark.driver.memory": values["driver_memory"]}
    if values["packages"]:
        settings["spark.jars.packages"] = values["packages"]
    if values.get("to") == "delta":
        settings |= DELTA
    return settings | pairs("--conf", values["conf"])


def pairs(flag: str, given: Sequence[str] | None) -> dict[str, str]:
    """Settings of the form NAME=VALUE.

    >>> pairs("--conf", ["spark.a=b=c"])
    {'spark.a': 'b=c'}
    """
    found = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not name.strip() or not equals:
            raise BadInputError(f"{flag}: expected NAME=VALUE, got {one!r}")
        found[name.strip()] = value.strip()
    return found


@contextmanager
def standard_error_to(path: Path) -> Iterator[None]:
    """What is begun inside says to a file what it says on standard error, also later: Java has no ear for less."""
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise BadInputError(f"--spark-log: {path} cannot be written: {(error.strerror or '').lower()}") from None
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _reason(log: Path) -> str:
    """Why Spark did not start, as far as its log tells: mistakes first."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line for line in lines if line.strip() and not line.startswith(CHATTER)]
    wrong = [line for line in said if "Exception" in line or "rror" in line]
    return sensible_line("\n".join(wrong or said)) if said else ""
