"""Where results are written: what may be written over, and what may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadInputError
from holdfast.streams.places import sink_at
from holdfast.streams.results import ALARM_COLUMNS
from holdfast.streams.sink import Sink

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT = Path("alarms.csv")


def default_alarms(console: Console) -> list[str]:
    """The file for alarms if none is named; none, if there is one of that name that is somebody else's."""
    if DEFAULT.exists():
        with DEFAULT.open("rb") as file:
            first = file.readline(4096)
        if first.strip() and first.strip() != ",".join(ALARM_COLUMNS).encode():
            console.print(
                f"{DEFAULT} is there and was not written by holdfast: it is left alone; --alarms names another file",
                style="yellow",
                markup=False,
            )
            return []
    return [str(DEFAULT)]


def refuse_own_input(source: Path, *places: Any) -> None:
    """Refuses to write over what is read."""
    for place in places:
        if place is None or not source.exists():
            continue
        path = Path(str(place).removeprefix("sqlite:").removeprefix("//"))
        if path.exists() and path.samefile(source):
            raise BadInputError(f"{place} is the file that is read: give another name for the results")


def sinks_of(places: Mapping[str, Any], anew: bool) -> list[Sink]:
    """The sinks of these names."""
    return [sink_at(place, what, anew=anew) for what, listed in places.items() for place in listed or ()]
