"""Summaries of all streams in memory, for the list of streams."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import numpy as np

from limpet.server.db.points import PointBlock, nan_to_none, to_api_time
from limpet.server.db.streams import StreamRow
from limpet.server.responses import ApiError
from limpet.streams.event_time import StreamClock

SPARKLINE_POINTS = 60


class StreamInfo:
    """One stream: its latest point, counts and alarms."""

    __slots__ = (
        *("entry", "n_points", "n_rejected", "n_alarms", "open_alarms", "open_alarm", "newest_alarm"),
        *("last_time", "last_seen", "last", "p_value", "sparkline", "clock", "first_row", "seq"),
        *("merged_until", "n_loose_blocks"),
    )

    def __init__(self, entry: StreamRow) -> None:
        self.entry = entry
        self.n_points = self.n_rejected = self.n_alarms = self.open_alarms = 0
        self.seq = 0  # of the group that changed it last
        self.first_row = 0  # that is stored in full
        self.merged_until = self.n_loose_blocks = 0  # the row up to which short blocks are merged, and those since
        self.open_alarm: dict[str, Any] | None = None  # the summary of the newest one
        self.newest_alarm: dict[str, Any] | None = None  # open or acknowledged
        self.last_time: str | float | int | None = None
        self.last_seen: float | None = None
        self.last: list[float | None] = []
        self.p_value: float | None = None
        self.sparkline: deque[tuple[float | None, bool]] = deque(maxlen=SPARKLINE_POINTS)
        self.clock = StreamClock()

    @property
    def names(self) -> list[str]:
        """Names of the variables: without names "value" for a single one, indices for several."""
        width = self.entry.width
        return list(self.entry.names or (["value"] if width == 1 else map(str, range(width))))

    def add_block(self, block: PointBlock) -> None:
        """Add points to the counts and the sparkline."""
        self.n_points = block.first_row + len(block)
        rejected = block.rejected
        self.n_rejected += int(np.count_nonzero(rejected))
        self.last, self.p_value = nan_to_none(block.values[-1]), nan_to_none(block.p_value[-1:])[0]
        self.last_time = to_api_time(block.times[-1])
        latest = nan_to_none(block.values[-SPARKLINE_POINTS:, 0])
        self.sparkline.extend(zip(latest, rejected[-SPARKLINE_POINTS:].tolist(), strict=True))

    def add_alarm(self, alarm: dict[str, Any]) -> None:
        """Add a new alarm."""
        self.n_alarms += 1
        self.open_alarms += 1
        self.open_alarm = self.newest_alarm = summarize_alarm(alarm)

    @property
    def last_alarm(self) -> dict[str, Any] | None:
        """The newest open alarm; without one, the newest of all."""
        return self.open_alarm if self.open_alarms else self.newest_alarm

    def to_api(self, n_warmup_points: int) -> dict[str, Any]:
        """Return the stream as the API has it; below `n_warmup_points` some kinds of alarm are not possible yet."""
        return {
            "key": self.entry.key,
            "variables": self.names,
            "n_points": self.n_points,
            "n_rejected": self.n_rejected,
            "n_alarms": self.n_alarms,
            "open_alarms": self.open_alarms,
            "state": "alarming" if self.open_alarms else "learning" if self.n_points < n_warmup_points else "quiet",
            "last_time": self.last_time,
            "last_seen": self.last_seen,
            "last": self.last,
            "p_value": self.p_value,
            "last_alarm": self.last_alarm,
            "sparkline": [value for value, _ in self.sparkline],
            "sparkline_rejected": [index for index, (_, is_rejected) in enumerate(self.sparkline) if is_rejected],
        }


class StreamRegistry:
    """All streams by key and id. The writer thread changes it, any thread may read.

    From `n_warmup_points` points of a stream on, every kind of alarm is possible.
    """

    def __init__(self, n_warmup_points: int) -> None:
        self.lock = threading.RLock()
        self.n_warmup_points, self.seq, self.n_points = n_warmup_points, 0, 0
        self._by_key: dict[str, StreamInfo] = {}
        self._by_id: OrderedDict[int, StreamInfo] = OrderedDict()  # those that changed last are at the end
        self._sorted_streams: dict[str, list[StreamInfo]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: str) -> StreamInfo | None:
        """Return the stream with this key, None if it does not exist."""
        return self._by_key.get(key)

    def require(self, key: str) -> StreamInfo:
        """Return the stream with this key, or raise."""
        if (stream := self._by_key.get(key)) is None:
            raise ApiError("unknown_stream", f"stream: {key!r:.80} does not exist")
        return stream

    def find_by_id(self, stream_id: int) -> StreamInfo | None:
        """Return the stream with this id, None if it does not exist."""
        return self._by_id.get(stream_id)

    def get_by_id(self, stream_id: int) -> StreamInfo:
        """Return the stream with this id, which must exist."""
        return self._by_id[stream_id]

    def streams(self) -> list[StreamInfo]:
        """Return all streams, those that changed last at the end."""
        return list(self._by_id.values())

    def clear(self) -> None:
        """Remove all streams."""
        self._by_key.clear()
        self._by_id.clear()
        self._sorted_streams.clear()

    def add(self, entry: StreamRow) -> StreamInfo:
        """Add a new stream."""
        stream = self._by_key[entry.key] = self._by_id[entry.id] = StreamInfo(entry)
        self._sorted_streams.clear()
        return stream

    def remove(self, stream: StreamInfo) -> None:
        """Remove a stream."""
        del self._by_key[stream.entry.key], self._by_id[stream.entry.id]
        self.seq += 1
        self._sorted_streams.clear()

    def touch(self, changed: Iterable[StreamInfo]) -> None:
        """Mark streams as changed by one group."""
        self.seq += 1
        for stream in changed:
            stream.seq = self.seq
            self._by_id.move_to_end(stream.entry.id)

    def invalidate_order(self) -> None:
        """Discard the sorted lists, after alarms were raised or acknowledged."""
        self._sorted_streams.clear()

    def totals(self) -> dict[str, Any]:
        """Return counts over all streams."""
        alarming = self._get_sorted("alarming")
        n_alarming = next((i for i, stream in enumerate(alarming) if not stream.open_alarms), len(alarming))
        open_alarms = sum(stream.open_alarms for stream in alarming[:n_alarming])
        counts = {"n_streams": len(self), "n_alarming": n_alarming, "open_alarms": open_alarms}
        return counts | {"n_points": self.n_points, "seq": self.seq}

    def list_streams(self, search: str, sort: str, offset: int, limit: int) -> dict[str, Any]:
        """Return a page of matching streams as the API has them, with their number and the totals."""
        with self.lock:
            matches, part = self._get_sorted(sort), search.casefold()
            if part:
                matches = [stream for stream in matches if part in stream.entry.key.casefold()]
            streams = [stream.to_api(self.n_warmup_points) for stream in matches[offset : offset + limit]]
            return {"total": len(matches), **self.totals(), "streams": streams}

    def changed_since(self, seq: int, max_streams: int) -> dict[str, Any]:
        """Return the streams that have changed since a group; if they are too many, those with the newest alarms."""
        with self.lock:
            changed = list(takewhile(lambda stream: stream.seq > seq, reversed(self._by_id.values())))
            is_truncated = len(changed) > max_streams
            if is_truncated:
                changed.sort(key=_alarm_sort_key)
            streams = [stream.to_api(self.n_warmup_points) for stream in changed[:max_streams]]
            return {**self.totals(), "streams": streams, "is_truncated": is_truncated}

    def _get_sorted(self, sort: str) -> list[StreamInfo]:
        if sort == "recent":  # changes with every point
            return sorted(self._by_key.values(), key=lambda stream: -(stream.last_seen or 0.0))
        if sort not in self._sorted_streams:
            sort_key = _alarm_sort_key if sort == "alarming" else _name_sort_key
            self._sorted_streams[sort] = sorted(self._by_key.values(), key=sort_key)
        return self._sorted_streams[sort]


def _name_sort_key(stream: StreamInfo) -> tuple[str, str]:
    return stream.entry.key.casefold(), stream.entry.key


def _alarm_sort_key(stream: StreamInfo) -> tuple[int, str, str]:
    """Sort streams with open alarms first, the newest alarm first."""
    newest = stream.last_alarm["id"] if stream.open_alarms and stream.last_alarm else 0
    return -newest, *_name_sort_key(stream)


def summarize_alarm(alarm: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of an alarm for the list of streams."""
    return {name: alarm[name] for name in ("id", "kind", "row", "time", "message")}
