"""Format counts, lists of names, durations and addresses for messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_UNIT_US = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}


def plural(n: int, noun: str, nouns: str = "") -> str:
    """Return a number and what it counts.

    >>> plural(1, "change"), plural(12_000, "anomaly", "anomalies"), plural(0, "row")
    ('1 change', '12,000 anomalies', '0 rows')
    """
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"


def join_names(names: Iterable[Any], conjunction: str = "", *, max_names: int = 20) -> str:
    """Return a list of names as text, shortened if there are many.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b", "c"], "or"), join_names([])
    ('a, b, c', 'a, b or c', 'none')
    >>> join_names("abc", max_names=2)
    'a, b and 1 more'
    """
    parts = [str(name) for name in names]
    if len(parts) > max_names:
        parts[max_names:], conjunction = [f"{len(parts) - max_names:,} more"], "and"
    if conjunction and len(parts) > 1:
        parts[-2:] = [f"{parts[-2]} {conjunction} {parts[-1]}"]
    return ", ".join(parts) or "none"


def truncate(text: str, max_chars: int = 80) -> str:
    """Return the beginning of a text on one line, without control characters.

    >>> truncate("a" * 100, 4), truncate("x\\x1b[2J")
    ('aaaa…', 'x?[2J')
    """
    printable = "".join(c if c.isprintable() else "?" for c in text[:max_chars])
    return printable + "…" if len(text) > max_chars else printable


def format_duration(seconds: float, max_units: int = 6) -> str:
    """Return a duration in days, hours … microseconds, the first `max_units` of them.

    >>> format_duration(600), format_duration(86_401.5), format_duration(200_000, max_units=2), format_duration(0)
    ('10 min', '1 d 1 s 500 ms', '2 d 7 h', '0 s')
    """
    remaining, parts = round(seconds * 1e6), []
    for unit, size in _UNIT_US.items():
        n, remaining = divmod(remaining, size)
        parts += [f"{n:,} {unit}"] if n else []
    return " ".join(parts[:max_units]) or "0 s"


def redact_url(url: str) -> str:
    """Return an address without login, options and the path of a webhook.

    >>> redact_url("nats://me:secret@host:4222/a?x=y"), redact_url("https://hooks.host/services/secret")
    ('nats://host:4222/a', 'https://hooks.host/…')
    >>> redact_url("what?.csv")
    'what?.csv'
    """
    if "://" not in url:
        return url
    scheme, separator, rest = url.partition("?")[0].rpartition("://")
    authority, slash, path = rest.partition("/")
    if scheme.lower() in ("http", "https"):
        slash, path = "/", "…"
    return scheme + separator + authority.rpartition("@")[2] + slash + path
