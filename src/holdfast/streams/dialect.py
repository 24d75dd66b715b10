"""How a file of separated values is written: what separates them, whether names come first, points or commas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from holdfast.streams.columns import is_time_name

SEPARATORS = ",;\t|"
MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "-", "?")
WITH_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
MARK = "\ufeff"  # that some programs put before everything else


@dataclass(frozen=True)
class Dialect:
    """separator, decimal: signs. names: of the columns. has_header: whether they are in the file. comments: lines
    before everything else that begin with #."""

    separator: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    comments: int = 0

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._as_json

    @cached_property
    def _as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> Dialect:
        """What `as_json` was called on."""
        return cls(**kept | {"names": tuple(kept["names"])})


def dialect_of(lines: Sequence[str]) -> Dialect:
    """How the first lines of a file are written.

    >>> dialect_of(["zeit;wert", "1;0,5", "2;0,7"])
    Dialect(separator=';', decimal=',', names=('zeit', 'wert'), has_header=True, comments=0)
    >>> dialect_of(["1.5", "2.5"]).names
    ('value',)
    """
    lines = [line.removeprefix(MARK) if i == 0 else line for i, line in enumerate(lines)]
    comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    lines = [line for line in lines[comments:] if line.strip()]
    if not lines:
        return Dialect(",", ".", (), False, comments)
    separator = max(SEPARATORS, key=lambda one: _agreement(lines, one))
    if separator == "," and "," not in lines[0] and all(WITH_COMMA.fullmatch(line.strip()) for line in lines[1:]):
        separator = ";"  # one column of numbers with commas
    rows = [fields_of(line, separator) for line in lines]
    body = rows[1:]
    commas = sum(bool(WITH_COMMA.fullmatch(one.strip())) for row in body for one in row)
    points = sum("." in one and number_of(one, ".") is not None for row in body for one in row)
    decimal = "," if separator != "," and commas > points else "."
    has_header = _is_header(rows[0], body, decimal)
    if has_header:
        names = names_of(lines[0], separator)
    else:
        width = len(rows[0])
        names = ("value",) if width == 1 else tuple(f"column_{i}" for i in range(width))
    return Dialect(separator, decimal, names, has_header, comments)


def names_of(line: str, separator: str) -> tuple[str, ...]:
    """The names in the first line; those that come again get a number."""
    return _unique([one.strip() for one in fields_of(line, separator)])


def fields_of(line: str, separator: str) -> list[str]:
    """The fields of one line; quotes are heeded, and end with the line.

    >>> fields_of('a,"b,""c"" ",d', ",")
    ['a', 'b,"c" ', 'd']
    """
    if '"' not in line:
        return line.split(separator)
    fields, begin = [], 0
    while True:
        before, after = "", begin
        if line.startswith('"', begin):
            before, after = _quoted(line, begin + 1)
        end = line.find(separator, after)
        fields.append(before + (line[after:] if end < 0 else line[after:end]))
        if end < 0:
            return fields
        begin = end + 1


def _quoted(line: str, begin: int) -> tuple[str, int]:
    """What stands in quotes that were opened before this place, and the place after them."""
    pieces = []
    while (end := line.find('"', begin)) >= 0:
        pieces.append(line[begin:end])
        if not line.startswith('"', end + 1):
            return "".join(pieces), end + 1
        pieces.append('"')
        begin = end + 2
    return "".join(pieces) + line[begin:], len(line)


def number_of(text: str, decimal: str) -> float | None:
    """A field as a number, NaN if it is missing, None if it is none.

    >>> number_of(" 1,5 ", ","), number_of("1_000", "."), number_of("n/a", ".")
    (1.5, None, None)
    """
    text = text.strip()
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    try:
        number = float(text)
    except ValueError:
        return float("nan") if text in MISSING else None
    return None if "_" in text or not text.isascii() else number


def _agreement(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """How many lines have as many fields as most of them, and how many fields that is; nothing for one field."""
    widths = Counter(len(fields_of(line, separator)) for line in lines)
    width, times = widths.most_common(1)[0]
    return (times, width) if width > 1 else (0, 0)


def _is_header(first: Sequence[str], body: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first line has no number, although a later one has, or names a time."""
    if any(is_time_name(one) and len(one.strip()) > 1 for one in first):  # and not "t", which may be a yes
        return True
    numbers = [i for i, one in enumerate(first) if number_of(one, decimal) is not None and one.strip()]
    if numbers:
        return False
    return not body or any(number_of(one, decimal) is not None and one.strip() for row in body for one in row)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names that come again get a number.

    >>> _unique(["a", "b", "a"])
    ('a', 'b', 'a_2')
    """
    taken: dict[str, None] = {}
    for name in names:
        again = 1
        unique = name
        while unique in taken:
            again += 1
            unique = f"{name}_{again}"
        taken[unique] = None
    return tuple(taken)
