"""Records that could not be read: how many for each reason, and the first few."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

MAX_KEPT_REJECTS = 5  # records that are kept to be shown
MAX_REJECT_CHARS = 80  # characters of each


@dataclass(frozen=True)
class RejectedRecord:
    """One record that could not be read. place: which of all records it is; text: how it begins."""

    reason: str
    index: int
    text: str

    def __str__(self) -> str:
        return f"record {self.index}: {self.reason}: {self.text}"


@dataclass
class RejectLog:
    """Counts by reason, and the first few records.

    >>> refused = Refusals()
    >>> refused.add("not JSON", 7, b'{"a": ')
    >>> refused.total, str(refused.first[0])
    (1, 'record 7: not JSON: {"a": ')
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: list[RejectedRecord] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.counts.values())

    @property
    def remaining_capacity(self) -> int:
        """How many more are kept to be shown."""
        return max(MAX_KEPT_REJECTS - len(self.first), 0)

    def count(self, reason: str, n: int) -> None:
        """So many more, of which none is shown."""
        if n:
            self.counts[reason] += n

    def add(self, reason: str, index: int, record: Any) -> None:
        """One more."""
        self.counts[reason] += 1
        if len(self.first) < MAX_KEPT_REJECTS:
            self.first.append(RejectedRecord(reason, index, shorten(record)))

    def merge(self, others: RejectLog, first_record: int) -> None:
        """Those of a further batch, whose records are counted from this one on."""
        self.counts.update(others.counts)
        for reject in others.first[: MAX_KEPT_REJECTS - len(self.first)]:
            self.first.append(RejectedRecord(reject.reason, first_record + reject.index, reject.text))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "counts": dict(self.counts),
            "first": [[reject.reason, reject.index, reject.text] for reject in self.first],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RejectLog:
        """What `as_json` was called on."""
        return cls(Counter(data["counts"]), [RejectedRecord(*fields) for fields in data["first"]])


def shorten(record: Any) -> str:
    """How a record begins, on one line and without what a terminal would obey.

    >>> shortened(b"a" * 100)[-5:], shortened(b"x\\xff\\x1b[2J")
    ('aaaa…', 'x�?[2J')
    """
    if isinstance(record, bytes | bytearray | memoryview):
        text = bytes(record[: 4 * MAX_REJECT_CHARS]).decode("utf-8", "replace")
    else:
        text = record if isinstance(record, str) else repr(record)
    cut = text[:MAX_REJECT_CHARS]
    printable = "".join(c if c.isprintable() else "?" for c in cut)
    return printable + "…" if len(text) > MAX_REJECT_CHARS else printable
