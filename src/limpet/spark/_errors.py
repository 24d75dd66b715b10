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
        error_type, message = type(error), str(error)
        if not is_spark_error(error) and not isinstance(error, ConnectionError):
            raise
        if error_type.__name__ in CONFIG_ERROR_NAMES or _innermost_error_name(message) in _library_error_names():
            raise
        is_disconnected = isinstance(error, ConnectionError) or error_type.__name__ == "Py4JNetworkError"
        reason = (
            "its process ended, perhaps for lack of memory"
            if is_disconnected
            else extract_error_line(message).rstrip(". ")
        )
        advice = f"See {log}." if log else "--spark-log FILE writes Spark's log."
        raise SparkJobError(f"Spark job failed: {reason}. {advice}") from None


def extract_error_line(text: str) -> str:
    """Return the line of a long message that has the reason.

    >>> extract_error_line("[UNRESOLVED_COLUMN] There is no column x. SQLSTATE: 42703;\\n'Project ['x]\\n+- Relation")
    'There is no column x.'
    >>> extract_error_line('Traceback:\\n  File "x.py"\\nlimpet.exceptions.CheckpointError: torn\\n\\tat a.b(C)')
    'torn'
    """
    if errors := _find_python_errors(text):
        kind, message = errors[-1]
        return (
            message[:MAX_MESSAGE_CHARS] if kind in _library_error_names() else f"{kind}: {message}"[:MAX_MESSAGE_CHARS]
        )
    lines = [line for line in text.splitlines() if line.strip() and not STACK_FRAME_PATTERN.match(line)]
    line = lines[0] if lines else "Spark gave no reason"
    for pattern in (QUERY_FAILED_PATTERN, JAVA_ERROR_PATTERN, ERROR_CLASS_PATTERN):
        line = pattern.sub("", line)
    return SQLSTATE_PATTERN.sub("", line).strip()[:MAX_MESSAGE_CHARS]


def _find_python_errors(text: str) -> list[tuple[str, str]]:
    """Return class and message of the Python errors in a text, the original last."""
    matches = [PYTHON_ERROR_PATTERN.match(line) for line in text.splitlines() if "Traceback" in text]
    return [(match[1], match[2]) for match in matches if match]


def _innermost_error_name(text: str) -> str:
    errors = _find_python_errors(text)
    return errors[-1][0] if errors else ""


def _library_error_names() -> set[str]:
    return {kind.__name__ for kind in LimpetError.__subclasses__()}
