"""Shorten errors of Spark, which have some sixty lines, to one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limpet.exceptions import InvalidInputError, LimpetError

PYTHON_ERROR_PATTERN = re.compile(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception|Warning)): (\S.*)$")
JAVA_ERROR_PATTERN = re.compile(
    r"^(?:: |Caused by: |Exception in thread \S+ )?(?:[a-z_]\w*\.)+[\w$]+(?:Exception|Error): "
)
QUERY_FAILED_PATTERN = re.compile(r"^(\[STREAM_FAILED\] )?Query \[id = .*?\] terminated with exception: ")
ERROR_CLASS_PATTERN = re.compile(r"^\[[A-Z_.0-9]+\] ")
SQLSTATE_PATTERN = re.compile(r"\s*SQLSTATE: \w+;?")
STACK_FRAME_PATTERN = re.compile(
    r"^\s*(at [\w$.<>/]+\(|\.\.\. \d+ more|File \"|Traceback|=+|An error occurred while calling |'?[A-Z]\w+ ?\[|[+:]- )"
)
MAX_MESSAGE_CHARS = 400
CONFIG_ERROR_NAMES = ("AnalysisException", "ParseException", "IllegalArgumentException")


class SparkJobError(LimpetError):
    """A Spark job failed while running, perhaps with valid options."""

    exit_code = 1


def is_spark_error(error: Exception) -> bool:
    """Return whether PySpark or Py4J raised an error."""
    return type(error).__module__.startswith(("pyspark", "py4j"))


@contextmanager
def friendly_spark_errors() -> Iterator[None]:
    """Raise errors of Spark as `InvalidInputError` with one line."""
    try:
        yield
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise InvalidInputError(extract_error_line(str(error))) from None


@contextmanager
def convert_job_errors(log: Path | None) -> Iterator[None]:
    """Raise errors of a job that are not about its options as `SparkJobError`."""
    try:
        yield
    except Exception as error:
        is_connection_error, name, message = isinstance(error, ConnectionError), type(error).__name__, str(error)
        if not is_spark_error(error) and not is_connection_error:
            raise
        if name in CONFIG_ERROR_NAMES or _find_python_error(message)[0] in _library_error_names():
            raise
        reason = extract_error_line(message).rstrip(". ")
        if is_connection_error or name == "Py4JNetworkError":
            reason = "its process ended, perhaps for lack of memory"
        advice = f"See {log}." if log else "The option spark_log writes Spark's log to a file."
        raise SparkJobError(f"Spark job failed: {reason}. {advice}") from None


def extract_error_line(text: str) -> str:
    """Return the line of a long message that has the reason.

    >>> extract_error_line("[UNRESOLVED_COLUMN] There is no column x. SQLSTATE: 42703;\\n'Project ['x]\\n+- Relation")
    'There is no column x.'
    >>> extract_error_line('Traceback:\\n  File "x.py"\\nlimpet.exceptions.CheckpointError: torn\\n\\tat a.b(C)')
    'torn'
    """
    kind, message = _find_python_error(text)
    if kind:
        return (message if kind in _library_error_names() else f"{kind}: {message}")[:MAX_MESSAGE_CHARS]
    lines = [line for line in text.splitlines() if line.strip() and not STACK_FRAME_PATTERN.match(line)]
    line = lines[0] if lines else "Spark gave no reason"
    for pattern in (QUERY_FAILED_PATTERN, JAVA_ERROR_PATTERN, ERROR_CLASS_PATTERN):
        line = pattern.sub("", line)
    return SQLSTATE_PATTERN.sub("", line).strip()[:MAX_MESSAGE_CHARS]


def _find_python_error(text: str) -> tuple[str, str]:
    """Return class and message of the last Python error in a text, the original one."""
    matches = [PYTHON_ERROR_PATTERN.match(line) for line in text.splitlines() if "Traceback" in text]
    return next(((match[1], match[2]) for match in reversed(matches) if match), ("", ""))


def _library_error_names() -> set[str]:
    return {kind.__name__ for kind in LimpetError.__subclasses__()}
