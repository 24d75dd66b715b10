"""What is known of every stream without asking the store: the list that people look at."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from holdfast.server.live.clock import Clock
from holdfast.server.store.blocks import DROPPED, Block, as_time, nullable
from holdfast.server.store.streams import Entry

SPARK = 60  # points of a sparkline
ALARMING, BY_NAME, RECENT = "alarming", "name", "recent"


class Known:
    """One stream. open_alarm, newest_alarm: the newest open one and the newest of all, as the API tells them in short.

    seq: when it changed last, counted in groups.

    first_row: the first whose point is kept. packed: the row before which blocks are long; loose: blocks since.
    """

    __slots__ = (
        *("entry", "n_points", "n_dropped", "n_alarms", "open_alarms", "open_alarm", "newest_alarm"),
        *("last_time", "last_seen", "last", "p_value", "spark", "clock", "first_row", "packed", "loose", "seq"),
    )

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.n_points = self.n_dropped = self.n_alarms = self.open_alarms = self.seq = 0
        self.first_row = self.packed = self.loose = 0
        self.open_alarm: dict[str, Any] | None = None
        self.newest_alarm: dict[str, Any] | None = None
        self.last_time: str | float | int | None = None
        self.last_seen: float | None = None
        self.last: list[float | None] = []
        self.p_value: float | None = None
        self.spark: deque[tuple[float | None, bool]] = deque(maxlen=SPARK)
        self.clock = Clock()

    @property
    def names(self) -> list[str]:
        """Of the variables; a single one that was not named is called value, several go by their numbers."""
        width = self.entry.width
        return list(self.entry.names or (["value"] if width == 1 else map(str, range(width))))

    @property
    def has_numbers(self) -> bool:
        """Whether its variables go by numbers."""
        return self.entry.names is None and self.entry.width > 1

    def note_block(self, block: Block) -> None:
        """Further points, of which the last few are shown."""
        self.n_points = block.first + len(block)
        self.n_dropped += int(np.count_nonzero(block.fates & DROPPED))
        self.last, self.p_value = nullable(block.values[-1]), nullable(block.p_value[-1:])[0]
        self.last_time = as_time(block.times[-1])
        dropped = [fate & DROPPED > 0 for fate in block.fates[-SPARK:].tolist()]
        self.spark.extend(zip(nullable(block.values[-SPARK:, 0]), dropped, strict=True))

    def note_alarm(self, alarm: dict[str, Any]) -> None:
        """A new one."""
        self.n_alarms += 1
        self.open_alarms += 1
        self.open_alarm = self.newest_alarm = in_short(alarm)

    @property
    def last_alarm(self) -> dict[str, Any] | None:
        """The newest that is open; if none is, the newest of all."""
        return self.open_alarm if self.open_alarms else self.newest_alarm

    def told(self, settled: int) -> dict[str, Any]:
        """As the API tells it. settled: points from which on every kind of alarm can be raised."""
        state = "alarming" if self.open_alarms else "learning" if self.n_points < settled else "quiet"
        return {
            "key": self.entry.key,
            "variables": self.names,
            "n_points": self.n_points,
            "n_dropped": self.n_dropped,
            "n_alarms": self.n_alarms,
            "open_alarms": self.open_alarms,
            "state": state,
            "last_time": self.last_time,
            "last_seen": self.last_seen,
            "last": self.last,
            "p_value": self.p_value,
            "last_alarm": self.last_alarm,
            "spark": [value for value, _ in self.spark],
            "spark_dropped": [place for place, (_, out) in enumerate(self.spark) if out],
        }


class Board:
    """All streams. One thread changes it, many look at it.

    settled: points from which on every kind of alarm can be raised.
    """

    def __init__(self, settled: int) -> None:
        self.lock = threading.RLock()
        self.settled, self.seq, self.n_points = settled, 0, 0
        self._by_key: dict[str, Known] = {}
        self._by_number: OrderedDict[int, Known] = OrderedDict()  # those that changed last stand at the end
        self._orders: dict[str, list[Known]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: str) -> Known | None:
        """The stream of this key."""
        return self._by_key.get(key)

    def of_number(self, number: int) -> Known:
        """The stream of this number, which there is."""
        return self._by_number[number]

    def clear(self) -> None:
        """Nothing is known."""
        self._by_key.clear()
        self._by_number.clear()
        self._orders.clear()

    def number_of(self, key: str) -> int:
        """The number of a stream that there is."""
        return self._by_key[key].entry.number

    def find(self, number: int) -> Known | None:
        """The stream of this number, if there is one."""
        return self._by_number.get(number)

    def add(self, entry: Entry) -> Known:
        """A new stream."""
        known = Known(entry)
        self._by_key[entry.key] = self._by_number[entry.number] = known
        self._orders.clear()
        return known

    def remove(self, known: Known) -> None:
        """A stream that is gone."""
        del self._by_key[known.entry.key], self._by_number[known.entry.number]
        self.seq += 1
        self._orders.clear()

    def note(self, changed: Iterable[Known]) -> None:
        """These streams have changed, together."""
        self.seq += 1
        for known in changed:
            known.seq = self.seq
            self._by_number.move_to_end(known.entry.number)

    def reorder(self) -> None:
        """Alarms have come or gone, so the order is another one."""
        self._orders.clear()

    def all(self) -> Iterator[Known]:
        """Every stream."""
        return iter(list(self._by_number.values()))

    def totals(self) -> dict[str, Any]:
        """Numbers over all streams."""
        alarming = self._in_order(ALARMING)
        n_alarming = next((i for i, known in enumerate(alarming) if not known.open_alarms), len(alarming))
        open_alarms = sum(known.open_alarms for known in alarming[:n_alarming])
        return {
            "n_streams": len(self),
            "n_alarming": n_alarming,
            "open_alarms": open_alarms,
            "n_points": self.n_points,
            "seq": self.seq,
        }

    def listed(self, search: str, sort: str, offset: int, limit: int) -> dict[str, Any]:
        """How many streams match, and some of them, as the API tells them."""
        with self.lock:
            found = self._in_order(sort)
            if search:
                wanted = search.casefold()
                found = [known for known in found if wanted in known.entry.key.casefold()]
            streams = [known.told(self.settled) for known in found[offset : offset + limit]]
            return {"total": len(found), **self.totals(), "streams": streams}

    def changed_since(self, seq: int, most: int) -> dict[str, Any]:
        """Streams that have changed since, the most alarming ones if they are many, as the API tells them."""
        with self.lock:
            changed = []
            for known in reversed(self._by_number.values()):
                if known.seq <= seq:
                    break
                changed.append(known)
            more = len(changed) > most
            if more:
                changed.sort(key=_alarming)
            streams = [known.told(self.settled) for known in changed[:most]]
            return {**self.totals(), "streams": streams, "more": more}

    def _in_order(self, sort: str) -> list[Known]:
        if sort == RECENT:
            return sorted(self._by_key.values(), key=lambda known: -(known.last_seen or 0.0))
        if sort not in self._orders:
            how = _alarming if sort == ALARMING else _by_name
            self._orders[sort] = sorted(self._by_key.values(), key=how)
        return self._orders[sort]


def _by_name(known: Known) -> tuple[str, str]:
    return known.entry.key.casefold(), known.entry.key


def _alarming(known: Known) -> tuple[int, str, str]:
    """Those with open alarms first, the newest of them before others."""
    newest = known.last_alarm["id"] if known.open_alarms and known.last_alarm else 0
    return -newest, *_by_name(known)


def in_short(alarm: dict[str, Any]) -> dict[str, Any]:
    """An alarm as it stands in the list of streams."""
    return {name: alarm[name] for name in ("id", "kind", "row", "time", "message")}
