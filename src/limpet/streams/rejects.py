"""Malformed records: how many for each reason, and the first few."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from limpet._format import truncate

MAX_KEPT_REJECTS = 5  # records
MAX_REJECT_CHARS = 80


@dataclass(frozen=True)
class RejectedRecord:
    """A malformed record: the reason, its index among all records, and how it begins."""

    reason: str
    index: int
    text: str

    def __str__(self) -> str:
        return f"record {self.index}: {self.reason}: {self.text}"


@dataclass
class RejectLog:
    """Counts of malformed records by reason, and the first few of them.

    >>> rejects = RejectLog()
    >>> rejects.add("not JSON", 7, b'{"a": ')
    >>> rejects.total, str(rejects.first[0])
    (1, 'record 7: not JSON: {"a": ')
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: list[RejectedRecord] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of malformed records."""
        return sum(self.counts.values())

    @property
    def remaining_capacity(self) -> int:
        """Number of further records that are kept."""
        return max(MAX_KEPT_REJECTS - len(self.first), 0)

    def count(self, reason: str, n: int) -> None:
        """Count `n` records without keeping them."""
        if n:
            self.counts[reason] += n

    def add(self, reason: str, index: int, record: Any) -> None:
        """Add a record."""
        self.counts[reason] += 1
        if len(self.first) < MAX_KEPT_REJECTS:
            self.first.append(RejectedRecord(reason, index, shorten(record)))

    def merge(self, others: RejectLog, first_record: int) -> None:
        """Add those of the next batch, whose first record has the index `first_record`."""
        self.counts.update(others.counts)
        for reject in others.first[: MAX_KEPT_REJECTS - len(self.first)]:
            self.first.append(RejectedRecord(reject.reason, first_record + reject.index, reject.text))

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold."""
        return {
            "counts": dict(self.counts),
            "first": [[reject.reason, reject.index, reject.text] for reject in self.first],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RejectLog:
        """Restore a log from `to_dict`."""
        return cls(Counter(data["counts"]), [RejectedRecord(*fields) for fields in data["first"]])


def shorten(record: Any) -> str:
    """Return the beginning of a record on one line, without control characters.

    >>> shorten(b"a" * 100)[-5:], shorten(b"x\\xff\\x1b[2J")
    ('aaaa…', 'x�?[2J')
    """
    if isinstance(record, bytes | bytearray | memoryview):
        return truncate(bytes(record[: 4 * MAX_REJECT_CHARS]).decode("utf-8", "replace"), MAX_REJECT_CHARS)
    return truncate(record if isinstance(record, str) else repr(record), MAX_REJECT_CHARS)
