"""Where results are written: what may be written over, and what may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet.exceptions import InvalidInputError
from limpet.report.html import GENERATOR
from limpet.streams.sinks._ownership import OwnerLockFile
from limpet.streams.sinks.base import BaseSink
from limpet.streams.uri import DATABASE_SUFFIXES, PARQUET_SUFFIXES, local_path, open_sink

if TYPE_CHECKING:
    from rich.console import Console


DEFAULT_ALARMS_PATH = Path("alarms.csv")
PROBE_BYTES = 1 << 16  # bytes at the beginning and at the end of a file


def get_default_alarm_uris(console: Console) -> list[str]:
    """The file for alarms if none is named; none, if there is one of that name that is somebody else's."""
    if not is_overwritable(DEFAULT_ALARMS_PATH):
        message = f"{DEFAULT_ALARMS_PATH} is there and was not written by limpet: it is left alone; --alarms names another file"
        console.print(message, style="yellow", markup=False)
        return []
    return [str(DEFAULT_ALARMS_PATH)]


def is_overwritable(path: Path) -> bool:
    """Whether a file may be written over: it is not there, is empty, or looks like results or a page of ours."""
    if not path.is_file() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        head = file.read(PROBE_BYTES)
        file.seek(max(path.stat().st_size - PROBE_BYTES, 0))
        tail = file.read()
    if path.suffix.lower() in (".html", ".htm"):
        return GENERATOR.encode() in head
    names = tail if path.suffix.lower() in PARQUET_SUFFIXES else head.partition(b"\n")[0]
    return path.suffix.lower() in DATABASE_SUFFIXES or (b"record" in names and (b"score" in names or b"onset" in names))


def check_outputs(*uris: str) -> None:
    """Refuses to write over a file that limpet has not written or that a watch goes on with, and two results to one
    place."""
    resolved = [(uri, path.resolve()) for uri in uris if (path := local_path(uri)) is not None]
    for uri, path in resolved:
        same = [other_path for _, other_path in resolved if other_path == path]
        if len(same) > 1 and path.suffix.lower() not in DATABASE_SUFFIXES:
            raise InvalidInputError(f"{uri} cannot hold two kinds of results: give each a place of its own")
        if OwnerLockFile(path).read() is not None:
            raise InvalidInputError(f"{uri} belongs to a watch, which may go on with it: give another name")
        if not is_overwritable(path):
            raise InvalidInputError(f"{uri} is there and was not written by limpet: give another name, or remove it")


def check_not_input(source: str, *uris: str) -> None:
    """Refuses to write over what is read, and into a folder that is watched."""
    input_path = local_path(source)
    if input_path is None or not input_path.exists():
        return
    for uri in uris:
        path = local_path(uri)
        if path is None:
            continue
        if path.exists() and path.samefile(input_path):
            raise InvalidInputError(f"{uri} is the file that is read: give another name for the results")
        if input_path.is_dir() and path.resolve().parent == input_path.resolve():
            raise InvalidInputError(f"{uri} is in the folder that is read: give the results another one")


def open_sinks(uris_by_table: Mapping[str, Any], overwrite: bool) -> list[BaseSink]:
    """The sinks of these names."""
    return [open_sink(uri, table, overwrite=overwrite) for table, uris in uris_by_table.items() for uri in uris or ()]
