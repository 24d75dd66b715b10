"""What Spark says when something is wrong, in one line: it says sixty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import BadInputError, HoldfastError

PYTHON = re.compile(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception|Warning)): (\S.*)$")
JAVA = re.compile(r"^(?:: |Caused by: |Exception in thread \S+ )?(?:[a-z_]\w*\.)+[\w$]+(?:Exception|Error): ")
NOISE = re.compile(r"^(\[STREAM_FAILED\] )?Query \[id = .*?\] terminated with exception: ")
CODE = re.compile(r"^\[[A-Z_.0-9]+\] ")
STATE = re.compile(r"\s*SQLSTATE: \w+;?")
FRAME = re.compile(
    r"^\s*(at [\w$.<>/]+\(|\.\.\. \d+ more|File \"|Traceback|=+|An error occurred while calling |'?[A-Z]\w+ ?\[|[+:]- )"
)
LONGEST = 400  # characters
SETTINGS = ("AnalysisException", "ParseException", "IllegalArgumentException")


@contextmanager
def told_plainly() -> Iterator[None]:
    """What Spark raises inside becomes an error of ours, of one line."""
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise BadInputError(sensible_line(str(error))) from None


class SparkDiedError(HoldfastError):
    """A job of Spark's that died while it ran: what was said to it may be right. Ends with another exit code."""

    exit_code = 1


@contextmanager
def while_it_runs(log: Path | None) -> Iterator[None]:
    """What Spark raises inside is the death of a job, unless it is about a setting. log: where Spark's own log goes."""
    try:
        yield
    except Exception as error:
        kind, told = type(error), str(error)
        if not kind.__module__.startswith(("pyspark", "py4j")) and not isinstance(error, ConnectionError):
            raise
        if kind.__name__ in SETTINGS or _innermost(told) in _own():
            raise
        gone = isinstance(error, ConnectionError) or kind.__name__ == "Py4JNetworkError"
        line = "its process is gone, perhaps for want of memory" if gone else sensible_line(told).rstrip(". ")
        rest = f"{log} has the rest" if log else "--spark-log FILE keeps the rest of what it says"
        raise SparkDiedError(f"Spark's job died while it ran: {line}; {rest}") from None


def sensible_line(text: str) -> str:
    """The line of a long message that says what is wrong.

    >>> sensible_line("[UNRESOLVED_COLUMN] There is no column x. SQLSTATE: 42703;\\n'Project ['x]\\n+- Relation")
    'There is no column x.'
    >>> sensible_line('Traceback:\\n  File "x.py"\\nholdfast.errors.CheckpointError: it is torn\\n\\tat a.b(C)')
    'it is torn'
    """
    if found := _of_python(text):
        kind, said = found[-1]
        return said[:LONGEST] if kind in _own() else f"{kind}: {said}"[:LONGEST]
    useful = [line for line in text.splitlines() if line.strip() and not FRAME.match(line)]
    line = useful[0] if useful else "something is wrong, and Spark does not say what"
    for pattern in (NOISE, JAVA, CODE):
        line = pattern.sub("", line)
    return STATE.sub("", line).strip()[:LONGEST]


def _of_python(text: str) -> list[tuple[str, str]]:
    """The errors of Python in a message, and what they say: the last one is where it began."""
    found = [PYTHON.match(line) for line in text.splitlines() if "Traceback" in text]
    return [(one[1], one[2]) for one in found if one]


def _innermost(text: str) -> str:
    found = _of_python(text)
    return found[-1][0] if found else ""


def _own() -> set[str]:
    return {kind.__name__ for kind in HoldfastError.__subclasses__()}
