"""Whether posts fit the streams they are for; nothing is changed unless all of a post does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limpet.core.state import Vector
from limpet.server.db.streams import VariableNames
from limpet.server.errors import ApiError
from limpet.server.ingest.event_time import filter_points
from limpet.server.ingest.parse import StreamPoints
from limpet.server.ingest.stream_registry import StreamInfo, StreamRegistry

StreamFactory = Callable[[str, int, VariableNames], StreamInfo]


@dataclass(eq=False)
class AcceptedPoints:
    """Points of one stream that are to be learnt. skipped: how many of the post were not, and why."""

    stream: StreamInfo
    values: Vector
    times: list[str | None]
    skipped: dict[str, int]
    first_row: int = -1
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def to_api(self) -> dict[str, Any]:
        """What is told to who sent them."""
        n = len(self.values)
        return {
            "stream": self.stream.entry.key,
            "accepted": n,
            "first_row": self.first_row if n else None,
            "last_row": self.first_row + n - 1 if n else None,
            "skipped": self.skipped,
            "alarms": self.alarms,
        }


def accept_points(
    parts: list[StreamPoints], registry: StreamRegistry, max_streams: int, make_stream: StreamFactory
) -> list[AcceptedPoints]:
    """The points of a post as the streams know them; new streams begin."""
    aligned = [_align_values(part, registry.get(part.key)) for part in parts]
    n_new = sum(registry.get(part.key) is None for part in parts)
    if n_new and len(registry) + n_new > max_streams:
        raise ApiError("too_many_streams", f"there are {len(registry)} streams of at most {max_streams}: delete some")
    accepted = []
    for part, values in zip(parts, aligned, strict=True):
        stream = registry.get(part.key) or make_stream(part.key, values.shape[1], part.names)
        index, skipped = list(range(len(part))), {"late": 0, "repeated": 0}
        if part.event_times.count(None) < len(part):
            index, skipped = filter_points(stream.time_filter, part.event_times, values.tolist())
        chosen = values if len(index) == len(part) else values[index]
        accepted.append(
            AcceptedPoints(
                stream,
                chosen,
                part.times if len(index) == len(part) else [part.times[row] for row in index],
                skipped,
            )
        )
    return accepted


def _align_values(part: StreamPoints, stream: StreamInfo | None) -> Vector:
    """The values in the order of the stream's variables."""
    if stream is None:
        return part.values
    _check_time_kind(part, stream)
    width, names = stream.entry.width, stream.entry.names
    if part.names is not None:
        if names is None:
            raise ApiError(
                "unknown_variable", f"the variables of {part.key!r:.80} have no names: send {width} values as a list"
            )
        unknown = [name for name in part.names if name not in names]
        if unknown:
            names_text = ", ".join(names)
            raise ApiError(
                "unknown_variable", f"{part.key!r:.80} has no variable {unknown[0]!r:.80}; it has {names_text:.300}"
            )
        values = np.full((len(part), width), np.nan)
        values[:, [names.index(name) for name in part.names]] = part.values
        return values
    if part.values.shape[1] != width:
        raise ApiError("wrong_width", f"{part.key!r:.80} has {width} variables, got {part.values.shape[1]} values")
    return part.values


def _check_time_kind(part: StreamPoints, stream: StreamInfo) -> None:
    """Times are numbers or dates, as they have been so far."""
    latest = stream.time_filter.latest
    event_time = next((time for time in part.event_times if time is not None), None)
    if latest is not None and event_time is not None and type(latest) is not type(event_time):
        kind = "numbers" if isinstance(latest, float) else "dates"
        raise ApiError("bad_time", f"the times of {part.key!r:.80} have been {kind} so far")
