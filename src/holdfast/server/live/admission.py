"""Whether posts fit the streams they are for; nothing is changed unless all of a post does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.scheme.state import Vector
from holdfast.server.errors import Refused
from holdfast.server.live.board import Board, Known
from holdfast.server.live.clock import sift
from holdfast.server.live.posts import Part
from holdfast.server.store.streams import Names

NewStream = Callable[[str, int, Names], Known]


@dataclass(eq=False)
class Admitted:
    """Points of one stream that are to be learnt. skipped: how many of the post were not, and why."""

    known: Known
    values: Vector
    times: list[str | None]
    skipped: dict[str, int]
    first_row: int = -1
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def answer(self) -> dict[str, Any]:
        """What is told to who sent them."""
        n = len(self.values)
        return {
            "stream": self.known.entry.key,
            "accepted": n,
            "first_row": self.first_row if n else None,
            "last_row": self.first_row + n - 1 if n else None,
            "skipped": self.skipped,
            "alarms": self.alarms,
        }


def admit(parts: list[Part], board: Board, most: int, new_stream: NewStream) -> list[Admitted]:
    """The points of a post as the streams know them; new streams begin."""
    fitted = [_fitted(part, board.get(part.key)) for part in parts]
    n_new = sum(board.get(part.key) is None for part in parts)
    if n_new and len(board) + n_new > most:
        raise Refused("too_many_streams", f"there are {len(board)} streams of at most {most}: delete some")
    admitted = []
    for part, values in zip(parts, fitted, strict=True):
        known = board.get(part.key) or new_stream(part.key, values.shape[1], part.names)
        places, skipped = list(range(len(part))), {"late": 0, "repeated": 0}
        if part.moments.count(None) < len(part):
            places, skipped = sift(known.clock, part.moments, values.tolist())
        chosen = values if len(places) == len(part) else values[places]
        admitted.append(
            Admitted(
                known,
                chosen,
                part.times if len(places) == len(part) else [part.times[place] for place in places],
                skipped,
            )
        )
    return admitted


def _fitted(part: Part, known: Known | None) -> Vector:
    """The values in the order of the stream's variables."""
    if known is None:
        return part.values
    _require_same_clock(part, known)
    width, names = known.entry.width, known.entry.names
    if part.names is not None:
        if names is None:
            raise Refused(
                "unknown_variable", f"the variables of {part.key!r:.80} have no names: send {width} values as a list"
            )
        unknown = [name for name in part.names if name not in names]
        if unknown:
            told = ", ".join(names)
            raise Refused(
                "unknown_variable", f"{part.key!r:.80} has no variable {unknown[0]!r:.80}; it has {told:.300}"
            )
        values = np.full((len(part), width), np.nan)
        values[:, [names.index(name) for name in part.names]] = part.values
        return values
    if part.values.shape[1] != width:
        raise Refused("wrong_width", f"{part.key!r:.80} has {width} variables, got {part.values.shape[1]} values")
    return part.values


def _require_same_clock(part: Part, known: Known) -> None:
    """Times are numbers or dates, as they have been so far."""
    latest = known.clock.latest
    given = next((moment for moment in part.moments if moment is not None), None)
    if latest is not None and given is not None and type(latest) is not type(given):
        kind = "numbers" if isinstance(latest, float) else "dates"
        raise Refused("bad_time", f"the times of {part.key!r:.80} have been {kind} so far")
