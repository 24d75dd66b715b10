"""Where results are written: what may be written over, and what may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadInputError
from holdfast.streams.places import DATABASES, sink_at
from holdfast.streams.sink import Sink

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT = Path("alarms.csv")


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
        return not path.is_dir() or path.suffix == ".parquet"
    with path.open("rb") as file:
        begin = file.read(1 << 16)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".jsonl", ".ndjson", ".json"):
        first = begin.splitlines()[0]
        return (b"record" in first and b"score" in first) or (b"record" in first and b"onset" in first)
    if suffix == ".parquet":
        return True  # one cannot tell by its beginning
    return suffix in DATABASES or b"<title>" in begin or suffix not in (".html", ".htm")


def refuse_others_files(*places: str) -> None:
    """Refuses to write over a file that holdfast has not written, and two results to one place."""
    files = [place for place in places if "://" not in place and place != "-"]
    resolved = [Path(place.removeprefix("sqlite:")).resolve() for place in files]
    for place, path in zip(files, resolved, strict=True):
        if resolved.count(path) > 1 and path.suffix.lower() not in DATABASES:
            raise BadInputError(f"{place} cannot hold two kinds of results: give each a place of its own")
        if not is_ours(path):
            raise BadInputError(f"{place} is there and was not written by holdfast: give another name, or remove it")


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
