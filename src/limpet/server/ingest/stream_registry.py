"""What is known of every stream without asking the store: the list that people look at."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from limpet.server.db.blocks import REJECTED_BIT, PointBlock, nan_to_none, to_api_time
from limpet.server.db.streams import StreamRow
from limpet.server.ingest.event_time import EventTimeFilter

SPARKLINE_POINTS = 60  # points of a sparkline
SORT_ALARMING, SORT_BY_NAME, SORT_RECENT = "alarming", "name", "recent"


class StreamInfo:
    """One stream. open_alarm, newest_alarm: the newest open one and the newest of all, as the API tells them in short.

    seq: when it changed last, counted in groups.

    first_row: the first whose point is kept. packed: the row before which blocks are long; loose: blocks since.
    """

    __slots__ = (
        *("entry", "n_points", "n_rejected", "n_alarms", "open_alarms", "open_alarm", "newest_alarm"),
        *("last_time", "last_seen", "last", "p_value", "spark", "clock", "first_row", "packed", "loose", "seq"),
    )

    def __init__(self, entry: StreamRow) -> None:
        self.entry = entry
        self.n_points = self.n_rejected = self.n_alarms = self.open_alarms = self.seq = 0
        self.first_row = self.packed_until = self.n_loose_blocks = 0
        self.open_alarm: dict[str, Any] | None = None
        self.newest_alarm: dict[str, Any] | None = None
        self.last_time: str | float | int | None = None
        self.last_seen: float | None = None
        self.last: list[float | None] = []
        self.p_value: float | None = None
        self.sparkline: deque[tuple[float | None, bool]] = deque(maxlen=SPARKLINE_POINTS)
        self.time_filter = EventTimeFilter()

    @property
    def names(self) -> list[str]:
        """Of the variables; a single one that was not named is called value, several go by their numbers."""
        width = self.entry.width
        return list(self.entry.names or (["value"] if width == 1 else map(str, range(width))))

    @property
    def has_unnamed_variables(self) -> bool:
        """Whether its variables go by numbers."""
        return self.entry.names is None and self.entry.width > 1

    def add_block(self, block: PointBlock) -> None:
        """Further points, of which the last few are shown."""
        self.n_points = block.first_row + len(block)
        self.n_rejected += int(np.count_nonzero(block.outcomes & REJECTED_BIT))
        self.last, self.p_value = nan_to_none(block.values[-1]), nan_to_none(block.p_value[-1:])[0]
        self.last_time = to_api_time(block.times[-1])
        is_rejected = [outcome & REJECTED_BIT > 0 for outcome in block.outcomes[-SPARKLINE_POINTS:].tolist()]
        self.sparkline.extend(zip(nan_to_none(block.values[-SPARKLINE_POINTS:, 0]), is_rejected, strict=True))

    def add_alarm(self, alarm: dict[str, Any]) -> None:
        """A new one."""
        self.n_alarms += 1
        self.open_alarms += 1
        self.open_alarm = self.newest_alarm = summarize_alarm(alarm)

    @property
    def last_alarm(self) -> dict[str, Any] | None:
        """The newest that is open; if none is, the newest of all."""
        return self.open_alarm if self.open_alarms else self.newest_alarm

    def to_api(self, n_settling_points: int) -> dict[str, Any]:
        """As the API tells it. settled: points from which on every kind of alarm can be raised."""
        state = "alarming" if self.open_alarms else "learning" if self.n_points < n_settling_points else "quiet"
        return {
            "key": self.entry.key,
            "variables": self.names,
            "n_points": self.n_points,
            "n_rejected": self.n_rejected,
            "n_alarms": self.n_alarms,
            "open_alarms": self.open_alarms,
            "state": state,
            "last_time": self.last_time,
            "last_seen": self.last_seen,
            "last": self.last,
            "p_value": self.p_value,
            "last_alarm": self.last_alarm,
            "spark": [value for value, _ in self.sparkline],
            "spark_rejected": [index for index, (_, is_rejected) in enumerate(self.sparkline) if is_rejected],
        }


class StreamRegistry:
    """All streams. One thread changes it, many look at it.

    settled: points from which on every kind of alarm can be raised.
    """

    def __init__(self, n_settling_points: int) -> None:
        self.lock = threading.RLock()
        self.n_settling_points, self.seq, self.n_points = n_settling_points, 0, 0
        self._by_key: dict[str, StreamInfo] = {}
        self._by_id: OrderedDict[int, StreamInfo] = OrderedDict()  # those that changed last stand at the end
        self._sorted_streams: dict[str, list[StreamInfo]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: str) -> StreamInfo | None:
        """The stream of this key."""
        return self._by_key.get(key)

    def get_by_id(self, stream_id: int) -> StreamInfo:
        """The stream of this number, which there is."""
        return self._by_id[stream_id]

    def clear(self) -> None:
        """Nothing is known."""
        self._by_key.clear()
        self._by_id.clear()
        self._sorted_streams.clear()

    def get_id(self, key: str) -> int:
        """The number of a stream that there is."""
        return self._by_key[key].entry.id

    def find_by_id(self, stream_id: int) -> StreamInfo | None:
        """The stream of this number, if there is one."""
        return self._by_id.get(stream_id)

    def add(self, entry: StreamRow) -> StreamInfo:
        """A new stream."""
        stream = StreamInfo(entry)
        self._by_key[entry.key] = self._by_id[entry.id] = stream
        self._sorted_streams.clear()
        return stream

    def remove(self, stream: StreamInfo) -> None:
        """A stream that is gone."""
        del self._by_key[stream.entry.key], self._by_id[stream.entry.id]
        self.seq += 1
        self._sorted_streams.clear()

    def touch(self, changed: Iterable[StreamInfo]) -> None:
        """These streams have changed, together."""
        self.seq += 1
        for stream in changed:
            stream.seq = self.seq
            self._by_id.move_to_end(stream.entry.id)

    def invalidate_order(self) -> None:
        """Alarms have come or gone, so the order is another one."""
        self._sorted_streams.clear()

    def iter_streams(self) -> Iterator[StreamInfo]:
        """Every stream."""
        return iter(list(self._by_id.values()))

    def totals(self) -> dict[str, Any]:
        """Numbers over all streams."""
        alarming = self._get_sorted(SORT_ALARMING)
        n_alarming = next((i for i, stream in enumerate(alarming) if not stream.open_alarms), len(alarming))
        open_alarms = sum(stream.open_alarms for stream in alarming[:n_alarming])
        return {
            "n_streams": len(self),
            "n_alarming": n_alarming,
            "open_alarms": open_alarms,
            "n_points": self.n_points,
            "seq": self.seq,
        }

    def list_streams(self, search: str, sort: str, offset: int, limit: int) -> dict[str, Any]:
        """How many streams match, and some of them, as the API tells them."""
        with self.lock:
            matches = self._get_sorted(sort)
            if search:
                needle = search.casefold()
                matches = [stream for stream in matches if needle in stream.entry.key.casefold()]
            streams = [stream.to_api(self.n_settling_points) for stream in matches[offset : offset + limit]]
            return {"total": len(matches), **self.totals(), "streams": streams}

    def changed_since(self, seq: int, max_streams: int) -> dict[str, Any]:
        """Streams that have changed since, the most alarming ones if they are many, as the API tells them."""
        with self.lock:
            changed = []
            for stream in reversed(self._by_id.values()):
                if stream.seq <= seq:
                    break
                changed.append(stream)
            is_truncated = len(changed) > max_streams
            if is_truncated:
                changed.sort(key=_alarm_sort_key)
            streams = [stream.to_api(self.n_settling_points) for stream in changed[:max_streams]]
            return {**self.totals(), "streams": streams, "more": is_truncated}

    def _get_sorted(self, sort: str) -> list[StreamInfo]:
        if sort == SORT_RECENT:
            return sorted(self._by_key.values(), key=lambda stream: -(stream.last_seen or 0.0))
        if sort not in self._sorted_streams:
            sort_key = _alarm_sort_key if sort == SORT_ALARMING else _name_sort_key
            self._sorted_streams[sort] = sorted(self._by_key.values(), key=sort_key)
        return self._sorted_streams[sort]


def _name_sort_key(stream: StreamInfo) -> tuple[str, str]:
    return stream.entry.key.casefold(), stream.entry.key


def _alarm_sort_key(stream: StreamInfo) -> tuple[int, str, str]:
    """Those with open alarms first, the newest of them before others."""
    newest = stream.last_alarm["id"] if stream.open_alarms and stream.last_alarm else 0
    return -newest, *_name_sort_key(stream)


def summarize_alarm(alarm: dict[str, Any]) -> dict[str, Any]:
    """An alarm as it stands in the list of streams."""
    return {name: alarm[name] for name in ("id", "kind", "row", "time", "message")}
