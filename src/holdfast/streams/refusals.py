"""Records that could not be read: how many for each reason, and the first few."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SHOWN = 5  # records that are kept to be shown
LENGTH = 80  # characters of each


@dataclass(frozen=True)
class Refusal:
    """One record that could not be read. place: which of all records it is; text: how it begins."""

    reason: str
    place: int
    text: str

    def __str__(self) -> str:
        return f"record {self.place}: {self.reason}: {self.text}"


@dataclass
class Refusals:
    """Counts by reason, and the first few records.

    >>> refused = Refusals()
    >>> refused.add("not JSON", 7, b'{"a": ')
    >>> refused.total, str(refused.first[0])
    (1, 'record 7: not JSON: {"a": ')
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: list[Refusal] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.counts.values())

    @property
    def wanted(self) -> int:
        """How many more are kept to be shown."""
        return max(SHOWN - len(self.first), 0)

    def count(self, reason: str, n: int) -> None:
        """So many more, of which none is shown."""
        if n:
            self.counts[reason] += n

    def add(self, reason: str, place: int, record: Any) -> None:
        """One more."""
        self.counts[reason] += 1
        if len(self.first) < SHOWN:
            self.first.append(Refusal(reason, place, shortened(record)))

    def join(self, others: Refusals, first_record: int) -> None:
        """Those of a further batch, whose records are counted from this one on."""
        self.counts.update(others.counts)
        for one in others.first[: SHOWN - len(self.first)]:
            self.first.append(Refusal(one.reason, first_record + one.place, one.text))

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"counts": dict(self.counts), "first": [[one.reason, one.place, one.text] for one in self.first]}

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> Refusals:
        """What `as_json` was called on."""
        return cls(Counter(kept["counts"]), [Refusal(*one) for one in kept["first"]])


def shortened(record: Any) -> str:
    """How a record begins, on one line and without what a terminal would obey.

    >>> shortened(b"a" * 100)[-5:], shortened(b"x\\xff\\x1b[2J")
    ('aaaa…', 'x�?[2J')
    """
    if isinstance(record, bytes | bytearray | memoryview):
        text = bytes(record[: 4 * LENGTH]).decode("utf-8", "replace")
    else:
        text = record if isinstance(record, str) else repr(record)
    cut = text[:LENGTH]
    shown = "".join(c if c.isprintable() else "?" for c in cut)
    return shown + "…" if len(text) > LENGTH else shown
