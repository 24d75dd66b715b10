"""What Spark says when something is wrong, in one line: it says sixty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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


def sensible_line(text: str) -> str:
    """The line of a long message that says what is wrong.

    >>> sensible_line("[UNRESOLVED_COLUMN] There is no column x. SQLSTATE: 42703;\\n'Project ['x]\\n+- Relation")
    'There is no column x.'
    >>> sensible_line('Traceback:\\n  File "x.py"\\nholdfast.errors.CheckpointError: it is torn\\n\\tat a.b(C)')
    'it is torn'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    of_python = [found for line in lines if "Traceback" in text and (found := PYTHON.match(line))]
    if of_python:
        kind, said = of_python[-1].groups()
        return said[:LONGEST] if kind in _own() else f"{kind}: {said}"[:LONGEST]
    useful = [line for line in lines if not FRAME.match(line)]
    line = useful[0] if useful else "something is wrong, and Spark does not say what"
    for pattern in (NOISE, JAVA, CODE):
        line = pattern.sub("", line)
    return STATE.sub("", line).strip()[:LONGEST]


def _own() -> set[str]:
    return {kind.__name__ for kind in HoldfastError.__subclasses__()}
