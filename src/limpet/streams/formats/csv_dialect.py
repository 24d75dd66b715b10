"""How a file of separated values is written: what separates them, whether names come first, points or commas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from limpet.streams.schema import is_time_name

FIELD_SEPARATORS = ",;\t|"
MISSING_VALUES = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "-", "?")
DECIMAL_COMMA_PATTERN = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
BOM = "\ufeff"  # that some programs put before everything else


@dataclass(frozen=True)
class CsvDialect:
    """separator, decimal: signs. names: of the columns. has_header: whether they are in the file. comments: lines
    before everything else that begin with #."""

    separator: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    comments: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._dict

    @cached_property
    def _dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CsvDialect:
        """What `as_json` was called on."""
        return cls(**data | {"names": tuple(data["names"])})


def sniff(lines: Sequence[str]) -> CsvDialect:
    """How the first lines of a file are written.

    >>> dialect_of(["zeit;wert", "1;0,5", "2;0,7"])
    Dialect(separator=';', decimal=',', names=('zeit', 'wert'), has_header=True, comments=0)
    >>> dialect_of(["1.5", "2.5"]).names
    ('value',)
    """
    lines = [line.removeprefix(BOM) if i == 0 else line for i, line in enumerate(lines)]
    comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    lines = [line for line in lines[comments:] if line.strip()]
    if not lines:
        return CsvDialect(",", ".", (), False, comments)
    separator = max(FIELD_SEPARATORS, key=lambda field: _count_agreeing_lines(lines, field))
    if (
        separator == ","
        and "," not in lines[0]
        and all(DECIMAL_COMMA_PATTERN.fullmatch(line.strip()) for line in lines[1:])
    ):
        separator = ";"  # one column of numbers with commas
    rows = [split_fields(line, separator) for line in lines]
    body = rows[1:]
    commas = sum(bool(DECIMAL_COMMA_PATTERN.fullmatch(field.strip())) for row in body for field in row)
    points = sum("." in field and parse_number(field, ".") is not None for row in body for field in row)
    decimal = "," if separator != "," and commas > points else "."
    has_header = _is_header(rows[0], body, decimal)
    if has_header:
        names = parse_header(lines[0], separator)
    else:
        width = len(rows[0])
        names = ("value",) if width == 1 else tuple(f"column_{i}" for i in range(width))
    return CsvDialect(separator, decimal, names, has_header, comments)


def parse_header(line: str, separator: str) -> tuple[str, ...]:
    """The names in the first line; those that come again get a number."""
    return _deduplicate_names([name.strip() for name in split_fields(line, separator)])


def split_fields(line: str, separator: str) -> list[str]:
    """The fields of one line; quotes are heeded, and end with the line.

    >>> fields_of('a,"b,""c"" ",d', ",")
    ['a', 'b,"c" ', 'd']
    """
    if '"' not in line:
        return line.split(separator)
    fields, start = [], 0
    while True:
        before, after = "", start
        if line.startswith('"', start):
            before, after = _parse_quoted(line, start + 1)
        end = line.find(separator, after)
        fields.append(before + (line[after:] if end < 0 else line[after:end]))
        if end < 0:
            return fields
        start = end + 1


def _parse_quoted(line: str, start: int) -> tuple[str, int]:
    """What stands in quotes that were opened before this place, and the place after them."""
    pieces = []
    while (end := line.find('"', start)) >= 0:
        pieces.append(line[start:end])
        if not line.startswith('"', end + 1):
            return "".join(pieces), end + 1
        pieces.append('"')
        start = end + 2
    return "".join(pieces) + line[start:], len(line)


def parse_number(text: str, decimal: str) -> float | None:
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
        return float("nan") if text in MISSING_VALUES else None
    return None if "_" in text or not text.isascii() else number


def _count_agreeing_lines(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """How many lines have as many fields as most of them, and how many fields that is; nothing for one field."""
    widths = Counter(len(split_fields(line, separator)) for line in lines)
    width, n_lines = widths.most_common(1)[0]
    return (n_lines, width) if width > 1 else (0, 0)


def _is_header(first: Sequence[str], body: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first line has no number, although a later one has, or names a time."""
    if any(is_time_name(field) and len(field.strip()) > 1 for field in first):  # and not "t", which may be a yes
        return True
    numbers = [i for i, field in enumerate(first) if parse_number(field, decimal) is not None and field.strip()]
    if numbers:
        return False
    return not body or any(parse_number(field, decimal) is not None and field.strip() for row in body for field in row)


def _deduplicate_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that come again get a number.

    >>> _unique(["a", "b", "a"])
    ('a', 'b', 'a_2')
    """
    used_names: dict[str, None] = {}
    for name in names:
        number = 1
        unique = name
        while unique in used_names:
            number += 1
            unique = f"{name}_{number}"
        used_names[unique] = None
    return tuple(used_names)
