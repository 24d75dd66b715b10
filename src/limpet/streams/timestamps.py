"""Times: numbers, ISO 8601, or other strings, shown but not interpreted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.fleet._key_index import is_valid_utf8

NUMBER_FORMAT, ISO_FORMAT, ZONED_ISO_FORMAT, TEXT_FORMAT = "number", "ISO 8601", "ISO 8601 with a zone", "text"
ISO_FORMATS = (ISO_FORMAT, ZONED_ISO_FORMAT)
Times = npt.NDArray[Any]
"""datetime64[ns] in UTC, float64, or strings (object)."""

ISO_PATTERN = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)(?:Z|([+-])(\d\d):?(\d\d)?)?)?", re.ASCII
)
UNIX_EPOCH, NAIVE_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
MIN_YEAR, MAX_YEAR = 1678, 2261  # years whose nanoseconds fit in 64 bits


def infer_time_format(samples: Sequence[Any]) -> str | None:
    """Return how most of the times are given; None if these are not times.

    >>> infer_time_format(["2024-05-01 10:00"]), infer_time_format(["2024-05-01T10:01:00Z"])
    ('ISO 8601', 'ISO 8601 with a zone')
    >>> infer_time_format(["5/1/24"]), infer_time_format([17.5, 18]), infer_time_format([True])
    ('text', 'number', None)
    """
    if not samples:
        return None
    if all(is_number(sample) for sample in samples):
        return NUMBER_FORMAT
    if not all(isinstance(sample, str) for sample in samples):
        return None
    parsed = [sample for sample in samples if parse_iso_ns(sample) is not None]
    if 2 * len(parsed) <= len(samples):
        return TEXT_FORMAT
    return ZONED_ISO_FORMAT if 2 * sum(map(has_zone, parsed)) > len(parsed) else ISO_FORMAT


def has_zone(text: str) -> bool:
    """Return whether a time in ISO 8601 has a zone."""
    return text.endswith("Z") or "+" in text or text.count("-") > 2


def is_number(value: Any) -> bool:
    """Return whether a value is a number; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_iso_ns(text: Any) -> int | None:
    """Return an ISO 8601 time in ns since 1970 (UTC without a zone), None if invalid.

    >>> parse_iso_ns("1970-01-01T00:00:01.5Z"), parse_iso_ns("1970-01-01 01:00:00+01:00"), parse_iso_ns("soon")
    (1500000000, 0, None)
    """
    match = ISO_PATTERN.fullmatch(text) if isinstance(text, str) else None
    if match is None or not MIN_YEAR <= int(text[:4]) <= MAX_YEAR:
        return None
    _, clock, _, _, minutes = match.groups()
    if (clock or "").startswith("24") or int(minutes or 0) > 59:  # accepted by some versions of Python
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # such as February 31
        return None
    since = moment - (NAIVE_UNIX_EPOCH if moment.tzinfo is None else UNIX_EPOCH)
    sub_us_digits = (clock or "").partition(".")[2][6:]  # of a microsecond
    microseconds = (86_400 * since.days + since.seconds) * 1_000_000 + since.microseconds
    return 1000 * microseconds + int(sub_us_digits.ljust(3, "0") if sub_us_digits else 0)


def parse_time(value: Any, kind: str) -> Any:
    """Parse a time by kind as nanoseconds, float or string; None if it is not one."""
    if kind in ISO_FORMATS:
        return parse_iso_ns(value)
    if kind == NUMBER_FORMAT:
        return float(value) if is_number(value) and abs(value) < 1e300 else None
    return value if isinstance(value, str) and (value.isascii() or is_valid_utf8(value)) else None


def to_time_array(values: Sequence[Any], kind: str) -> Times:
    """Return an array of times that `parse_time` has parsed."""
    if kind in ISO_FORMATS:
        return np.array(values, np.int64).view("datetime64[ns]")
    if kind == NUMBER_FORMAT:
        return np.array(values, np.float64)
    strings = np.empty(len(values), object)
    strings[:] = values
    return strings


def format_times(times: Times, zoned: bool = False) -> list[Any]:
    """Return times as JSON values: ISO 8601 (Z if zoned), numbers, or strings.

    >>> format_times(np.array([1500000000], "datetime64[ns]"), True), format_times(np.array([3.0, 3.5]))
    (['1970-01-01T00:00:01.500Z'], [3, 3.5])
    """
    if times.dtype.kind == "M":
        strings = [f"{value}Z" for value in format_iso(times)] if zoned else list(format_iso(times))
        return [None if missing else value for value, missing in zip(strings, np.isnat(times).tolist(), strict=True)]
    if times.dtype.kind == "f":
        is_integer = (times == np.floor(times)) & (np.abs(times) < 2.0**53)
        return [
            int(value) if integer else value if abs(value) < np.inf else None
            for value, integer in zip(times.tolist(), is_integer.tolist(), strict=True)
        ]
    return list(times)


def format_iso(times: Times) -> list[str]:
    """Return each time in ISO 8601 without trailing zeros, independent of the others."""
    strings: list[str] = np.datetime_as_string(times, unit="ns").tolist()
    trimmed = []
    for text, fraction in zip(strings, (times.view(np.int64) % 1_000_000_000).tolist(), strict=True):
        end = -10 if fraction == 0 else -6 if fraction % 1_000_000 == 0 else -3 if fraction % 1_000 == 0 else None
        trimmed.append(text[:end])
    return trimmed


def to_comparable(times: Times) -> npt.NDArray[Any] | None:
    """Return times as ordered numbers; None for strings, which have no order."""
    if times.dtype.kind == "M":
        return times.view(np.int64)
    return times if times.dtype.kind == "f" else None
