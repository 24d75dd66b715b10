"""A folder that files are dropped into, as a source."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.batch import Batch
from limpet.streams.rejects import shorten
from limpet.streams.schema import ColumnSpec, Schema, schema_from_position
from limpet.streams.sources.base import Source
from limpet.streams.timestamps import ISO_FORMAT, ZONED_ISO_FORMAT

log = logging.getLogger("limpet.streams")
POLL_INTERVAL_S = 0.4  # seconds until one looks again whether a file has come
MAX_SCAN_SHARE = 0.05  # of the time, at most, that goes into looking
UNFINISHED_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", ".swp")
UNREADABLE_FILE = "a file that cannot be read"
Stamp = list[Any]  # name, time and size of a file


class DirectorySource:
    """The files of a folder one after another, each to its end: those that came first, first.

    A file is taken as finished when it is there: write it under a name that begins with a point or ends in .tmp or
    .part, and rename it. What the columns are is decided by the first file. One that cannot be read, or lacks a
    column, is passed over, and told of. follow: wait for more. A file that is put in the place of one that was read is
    read, too; one that has gone from the folder is forgotten.

    opened: makes the source of a file, for what is wanted of it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        open_source: Callable[[Path, ColumnSpec], Source],
        spec: ColumnSpec | None = None,
        *,
        follow: bool = True,
    ) -> None:
        self.path, self.spec, self.follow = Path(path), spec or ColumnSpec(), follow
        if not self.path.is_dir():
            raise InvalidInputError(f"there is no folder {self.path}")
        self._open_source = open_source
        self.columns: Schema | None = None
        self._done: dict[str, Stamp] = {}
        self._done_list: list[Stamp] | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        state = _check_position(position)
        self.columns = schema_from_position(state)
        self._done_list = None
        self._done = {stamp[0]: stamp for stamp in map(_to_stamp, state["done"])}
        current, inner = state["current"], state["inner"]
        waiting: list[str] = []
        while True:
            if not waiting:
                began = time.monotonic()
                waiting = self._list_new_files(current)
                pause = max(POLL_INTERVAL_S, (time.monotonic() - began) / MAX_SCAN_SHARE)
            current = current or (waiting.pop(0) if waiting else None)
            if current is None:
                if not self.follow:
                    return
                time.sleep(pause)
                yield Batch(np.zeros((0, 1)), self._position(None, None))
                continue
            yield from self._read_file(current, inner)
            current, inner = None, None
            yield Batch(np.zeros((0, 1)), self._position(None, None))

    def _read_file(self, name: str, inner: Any) -> Iterator[Batch]:
        spec = self.columns.spec if self.columns else self.spec
        path = self.path / name
        before, error = _read_file_identity(path), None
        try:
            source = self._open_source(path, spec)
            for batch in source.read(inner):
                self._check_columns(getattr(source, "columns", None))
                batch.position = self._position(name, batch.position)
                yield batch
        except (LimpetError, OSError) as wrong:
            error = wrong
        after = _read_file_identity(
            path
        )  # it may have grown meanwhile, but if it is another file that one is not read yet
        stamp = (after if before[2] == after[2] and error is None else before)[:2]
        if stamp[0] is not None:  # else it has gone again
            self._done[name], self._done_list = [name, *stamp], None
        if error is not None:
            log.error("%s is passed over: %s", path, error)
            reject_batch = Batch(np.zeros((0, 1)), self._position(None, None), n_records=1)
            reject_batch.rejects.add(UNREADABLE_FILE, 0, f"{name}: {error}")
            yield reject_batch

    def _check_columns(self, schema: Schema | None) -> None:
        """What the columns are; times must be numbers, dates or texts in all files."""
        if self.columns is None:
            self.columns = schema
            return
        kinds = [None if candidate is None else candidate.time_kind for candidate in (self.columns, schema)]
        if schema is not None and len({ISO_FORMAT if kind == ZONED_ISO_FORMAT else kind for kind in kinds}) > 1:
            raise InvalidInputError(f"its times are given as {kinds[1]}, those of the files before as {kinds[0]}")

    def _list_new_files(self, current: str | None) -> list[str]:
        """The files not read yet, those that came first first; what has gone from the folder is forgotten."""
        new_files, done = [], {}
        for entry in os.scandir(self.path):
            if entry.name == current or entry.name.startswith(".") or entry.name.endswith(UNFINISHED_SUFFIXES):
                continue
            with suppress(FileNotFoundError):  # it has gone again
                if entry.is_file():
                    status, known = entry.stat(), self._done.get(entry.name)
                    stamp = [entry.name, status.st_mtime_ns, status.st_size]
                    if known is not None and (known == stamp or known[1] is None):
                        done[entry.name] = known if known == stamp else stamp
                    else:
                        new_files.append((status.st_mtime_ns, entry.name))
        if done != self._done:
            self._done, self._done_list = done, None
        return [name for _, name in sorted(new_files)]

    def _position(self, current: str | None, inner: Any) -> dict[str, Any]:
        """done: name, time and size of each file that has been read; the same list until there is one more."""
        columns = None if self.columns is None else self.columns.to_dict()
        if self._done_list is None:
            self._done_list = list(self._done.values())
        return {"done": self._done_list, "current": current, "inner": inner, "columns": columns}


def _check_position(position: Any) -> dict[str, Any]:
    if position is None:
        return {"done": [], "current": None, "inner": None, "columns": None}
    if not isinstance(position, dict) or not {"done", "current", "inner", "columns"} <= position.keys():
        raise InvalidInputError(f"this is not a position in a folder: {shorten(repr(position))}")
    return position


def _to_stamp(done: Any) -> Stamp:
    """Name, time and size of a file that was read; before, only the name was kept."""
    return [done, None, None] if isinstance(done, str) else list(done)


def _read_file_identity(path: Path) -> tuple[int | None, int | None, int | None]:
    """When a file was written, its size and which one it is."""
    try:
        status = path.stat()
    except OSError:
        return None, None, None
    return status.st_mtime_ns, status.st_size, status.st_ino
