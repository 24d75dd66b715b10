"""Open the destinations of results; refuse to overwrite files that limpet did not write."""

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
PROBE_BYTES = 1 << 16  # at the beginning and at the end of a file


def get_default_alarm_uris(console: Console) -> list[str]:
    """Return the default file for alarms; none if a file of that name was not written by limpet."""
    if not is_overwritable(DEFAULT_ALARMS_PATH):
        message = f"{DEFAULT_ALARMS_PATH} was not written by limpet and is kept. --alarms names another file."
        console.print(message, style="yellow", markup=False)
        return []
    return [str(DEFAULT_ALARMS_PATH)]


def is_overwritable(path: Path) -> bool:
    """Return whether a file may be overwritten: it is missing or empty, or looks like results or a page of limpet."""
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
    """Refuse to overwrite a file that limpet did not write or a watch owns, and two tables in one file."""
    resolved = [(uri, path.resolve()) for uri in uris if (path := local_path(uri)) is not None]
    for uri, path in resolved:
        same = [other_path for _, other_path in resolved if other_path == path]
        if len(same) > 1 and path.suffix.lower() not in DATABASE_SUFFIXES:
            raise InvalidInputError(f"{uri}: cannot hold both alarms and points. Name a file for each.")
        if OwnerLockFile(path).read() is not None:
            raise InvalidInputError(f"{uri}: belongs to a watch, which may resume. Give another name.")
        if not is_overwritable(path):
            raise InvalidInputError(f"{uri}: exists and was not written by limpet. Give another name, or remove it.")


def check_not_input(source: str, *uris: str) -> None:
    """Refuse to overwrite the input, and to write into a directory that is watched."""
    input_path = local_path(source)
    if input_path is None or not input_path.exists():
        return
    for uri in uris:
        path = local_path(uri)
        if path is None:
            continue
        if path.exists() and path.samefile(input_path):
            raise InvalidInputError(f"{uri}: is the input file. Give another name for the results.")
        if input_path.is_dir() and path.resolve().parent == input_path.resolve():
            raise InvalidInputError(f"{uri}: is in the input directory. Give another directory for the results.")


def open_sinks(uris_by_table: Mapping[str, Any], overwrite: bool) -> list[BaseSink]:
    """Open the sinks of each table."""
    return [open_sink(uri, table, overwrite=overwrite) for table, uris in uris_by_table.items() for uri in uris or ()]
