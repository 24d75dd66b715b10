"""Infer the dialect of CSV: separator, decimal sign, header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from limpet.streams.schema import is_time_name

FIELD_SEPARATORS = ",;\t|"
MISSING_VALUES = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "-", "?")
DECIMAL_COMMA_PATTERN = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
BOM = "\ufeff"  # byte order mark


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is written.

    Attributes
    ----------
    separator : str
        Between fields.
    decimal : str
        Decimal sign of numbers.
    names : tuple of str
        Names of the columns.
    has_header : bool
        Whether the names are in the file.
    comments : int
        Lines before the header that begin with #.
    """

    separator: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    comments: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CsvDialect:
        """Restore a dialect from `to_dict`."""
        return cls(**data | {"names": tuple(data["names"])})


def sniff(lines: Sequence[str]) -> CsvDialect:
    """Infer the dialect from the first lines of a file.

    >>> sniff(["zeit;wert", "1;0,5", "2;0,7"])
    CsvDialect(separator=';', decimal=',', names=('zeit', 'wert'), has_header=True, comments=0)
    >>> sniff(["1.5", "2.5"]).names
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
        separator = ";"  # one column of numbers with decimal commas
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
    """Return the names in the header; duplicates get a number."""
    return _deduplicate_names([name.strip() for name in split_fields(line, separator)])


def split_fields(line: str, separator: str) -> list[str]:
    """Split one line into fields; quotes end with the line.

    >>> split_fields('a,"b,""c"" ",d', ",")
    ['a', 'b,"c" ', 'd']
    """
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:  # a carriage return, or a field of more than 128 kB
        return line.split(separator)


def parse_number(text: str, decimal: str) -> float | None:
    """Return a field as a number, NaN if it is missing, None if it is not a number.

    >>> parse_number(" 1,5 ", ","), parse_number("1_000", "."), parse_number("n/a", ".")
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
    """Return how many lines have the most frequent number of fields, and this number; zeros for one field."""
    widths = Counter(len(split_fields(line, separator)) for line in lines)
    width, n_lines = widths.most_common(1)[0]
    return (n_lines, width) if width > 1 else (0, 0)


def _is_header(first: Sequence[str], body: Sequence[Sequence[str]], decimal: str) -> bool:
    """Return whether the first line names a time, or has no number where a later line has one."""
    if any(is_time_name(field) and len(field.strip()) > 1 for field in first):  # "t" can be a boolean
        return True
    numbers = [i for i, field in enumerate(first) if parse_number(field, decimal) is not None and field.strip()]
    if numbers:
        return False
    return not body or any(parse_number(field, decimal) is not None and field.strip() for row in body for field in row)


def _deduplicate_names(names: Sequence[str]) -> tuple[str, ...]:
    """Append a number to duplicate names.

    >>> _deduplicate_names(["a", "b", "a"])
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
