"""What Spark says when something is wrong, in one line: it says sixty."""

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
MAX_MESSAGE_CHARS = 400  # characters
CONFIG_ERROR_NAMES = ("AnalysisException", "ParseException", "IllegalArgumentException")


@contextmanager
def friendly_spark_errors() -> Iterator[None]:
    """What Spark raises inside becomes an error of ours, of one line."""
    try:
        yield
    except LimpetError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise InvalidInputError(extract_error_line(str(error))) from None


class SparkJobError(LimpetError):
    """A job of Spark's that died while it ran: what was said to it may be right. Ends with another exit code."""

    exit_code = 1


@contextmanager
def convert_job_errors(log: Path | None) -> Iterator[None]:
    """What Spark raises inside is the death of a job, unless it is about a setting. log: where Spark's own log goes."""
    try:
        yield
    except Exception as error:
        error_type, message = type(error), str(error)
        if not error_type.__module__.startswith(("pyspark", "py4j")) and not isinstance(error, ConnectionError):
            raise
        if error_type.__name__ in CONFIG_ERROR_NAMES or _innermost_error_name(message) in _library_error_names():
            raise
        is_disconnected = isinstance(error, ConnectionError) or error_type.__name__ == "Py4JNetworkError"
        line = (
            "its process is gone, perhaps for want of memory"
            if is_disconnected
            else extract_error_line(message).rstrip(". ")
        )
        hint = f"{log} has the rest" if log else "--spark-log FILE keeps the rest of what it says"
        raise SparkJobError(f"Spark's job died while it ran: {line}; {hint}") from None


def extract_error_line(text: str) -> str:
    """The line of a long message that says what is wrong.

    >>> sensible_line("[UNRESOLVED_COLUMN] There is no column x. SQLSTATE: 42703;\\n'Project ['x]\\n+- Relation")
    'There is no column x.'
    >>> sensible_line('Traceback:\\n  File "x.py"\\nlimpet.exceptions.CheckpointError: it is torn\\n\\tat a.b(C)')
    'it is torn'
    """
    if errors := _find_python_errors(text):
        kind, message = errors[-1]
        return (
            message[:MAX_MESSAGE_CHARS] if kind in _library_error_names() else f"{kind}: {message}"[:MAX_MESSAGE_CHARS]
        )
    lines = [line for line in text.splitlines() if line.strip() and not STACK_FRAME_PATTERN.match(line)]
    line = lines[0] if lines else "something is wrong, and Spark does not say what"
    for pattern in (QUERY_FAILED_PATTERN, JAVA_ERROR_PATTERN, ERROR_CLASS_PATTERN):
        line = pattern.sub("", line)
    return SQLSTATE_PATTERN.sub("", line).strip()[:MAX_MESSAGE_CHARS]


def _find_python_errors(text: str) -> list[tuple[str, str]]:
    """The errors of Python in a message, and what they say: the last one is where it began."""
    matches = [PYTHON_ERROR_PATTERN.match(line) for line in text.splitlines() if "Traceback" in text]
    return [(match[1], match[2]) for match in matches if match]


def _innermost_error_name(text: str) -> str:
    errors = _find_python_errors(text)
    return errors[-1][0] if errors else ""


def _library_error_names() -> set[str]:
    return {kind.__name__ for kind in LimpetError.__subclasses__()}
