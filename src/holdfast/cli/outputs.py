"""Where results are written: what may be written over, and what may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadInputError
from holdfast.plots.report import GENERATOR
from holdfast.streams.owners import OwnerFile
from holdfast.streams.places import DATABASES, PARQUET, path_at, sink_at
from holdfast.streams.sink import Sink

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT = Path("alarms.csv")
LOOKED_AT = 1 << 16  # bytes at the beginning and at the end of a file


def default_alarms(console: Console) -> list[str]:
    """The file for alarms if none is named; none, if there is one of that name that is somebody else's."""
    if not is_ours(DEFAULT):
        told = f"{DEFAULT} is there and was not written by holdfast: it is left alone; --alarms names another file"
        console.print(told, style="yellow", markup=False)
        return []
    return [str(DEFAULT)]


def is_ours(path: Path) -> bool:
    """Whether a file may be written over: it is not there, is empty, or looks like results or a page of ours."""
    if not path.is_file() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        begin = file.read(LOOKED_AT)
        file.seek(max(path.stat().st_size - LOOKED_AT, 0))
        end = file.read()
    if path.suffix.lower() in (".html", ".htm"):
        return GENERATOR.encode() in begin
    names = end if path.suffix.lower() in PARQUET else begin.partition(b"\n")[0]
    return path.suffix.lower() in DATABASES or (b"record" in names and (b"score" in names or b"onset" in names))


def refuse_others_files(*places: str) -> None:
    """Refuses to write over a file that holdfast has not written or that a watch goes on with, and two results to one
    place."""
    resolved = [(place, path.resolve()) for place in places if (path := path_at(place)) is not None]
    for place, path in resolved:
        same = [one for _, one in resolved if one == path]
        if len(same) > 1 and path.suffix.lower() not in DATABASES:
            raise BadInputError(f"{place} cannot hold two kinds of results: give each a place of its own")
        if OwnerFile(path).read() is not None:
            raise BadInputError(f"{place} belongs to a watch, which may go on with it: give another name")
        if not is_ours(path):
            raise BadInputError(f"{place} is there and was not written by holdfast: give another name, or remove it")


def refuse_own_input(source: str, *places: str) -> None:
    """Refuses to write over what is read, and into a folder that is watched."""
    read = path_at(source)
    if read is None or not read.exists():
        return
    for place in places:
        path = path_at(place)
        if path is None:
            continue
        if path.exists() and path.samefile(read):
            raise BadInputError(f"{place} is the file that is read: give another name for the results")
        if read.is_dir() and path.resolve().parent == read.resolve():
            raise BadInputError(f"{place} is in the folder that is read: give the results another one")


def sinks_of(places: Mapping[str, Any], anew: bool) -> list[Sink]:
    """The sinks of these names."""
    return [sink_at(place, what, anew=anew) for what, listed in places.items() for place in listed or ()]
