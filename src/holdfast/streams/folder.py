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

from holdfast.errors import BadInputError, HoldfastError
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, columns_at
from holdfast.streams.refusals import shortened
from holdfast.streams.source import Source
from holdfast.streams.times import ISO, ZONED

log = logging.getLogger("holdfast.streams")
LOOK = 0.4  # seconds until one looks again whether a file has come
SHARE = 0.05  # of the time, at most, that goes into looking
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".swp")
WRONG_FILE = "a file that cannot be read"
Stamp = list[Any]  # name, time and size of a file


class Folder:
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
        opened: Callable[[Path, Wanted], Source],
        wanted: Wanted | None = None,
        *,
        follow: bool = True,
    ) -> None:
        self.path, self.wanted, self.follow = Path(path), wanted or Wanted(), follow
        if not self.path.is_dir():
            raise BadInputError(f"there is no folder {self.path}")
        self._opened = opened
        self.columns: Columns | None = None
        self._done: dict[str, Stamp] = {}
        self._told: list[Stamp] | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        told = _checked(position)
        self.columns = columns_at(told)
        self._told = None
        self._done = {stamp[0]: stamp for stamp in map(_stamp, told["done"])}
        current, inner = told["current"], told["inner"]
        waiting: list[str] = []
        while True:
            if not waiting:
                began = time.monotonic()
                waiting = self._new(current)
                pause = max(LOOK, (time.monotonic() - began) / SHARE)
            current = current or (waiting.pop(0) if waiting else None)
            if current is None:
                if not self.follow:
                    return
                time.sleep(pause)
                yield Batch(np.zeros((0, 1)), self._position(None, None))
                continue
            yield from self._of_file(current, inner)
            current, inner = None, None
            yield Batch(np.zeros((0, 1)), self._position(None, None))

    def _of_file(self, name: str, inner: Any) -> Iterator[Batch]:
        wanted = self.columns.wanted if self.columns else self.wanted
        path = self.path / name
        before, error = _identity(path), None
        try:
            source = self._opened(path, wanted)
            for batch in source.read(inner):
                self._agree(getattr(source, "columns", None))
                batch.position = self._position(name, batch.position)
                yield batch
        except (HoldfastError, OSError) as wrong:
            error = wrong
        after = _identity(path)  # it may have grown meanwhile, but if it is another file that one is not read yet
        stamp = (after if before[2] == after[2] and error is None else before)[:2]
        if stamp[0] is not None:  # else it has gone again
            self._done[name], self._told = [name, *stamp], None
        if error is not None:
            log.error("%s is passed over: %s", path, error)
            bad = Batch(np.zeros((0, 1)), self._position(None, None), n_records=1)
            bad.refused.add(WRONG_FILE, 0, f"{name}: {error}")
            yield bad

    def _agree(self, found: Columns | None) -> None:
        """What the columns are; times must be numbers, dates or texts in all files."""
        if self.columns is None:
            self.columns = found
            return
        kinds = [None if one is None else one.time_kind for one in (self.columns, found)]
        if found is not None and len({ISO if kind == ZONED else kind for kind in kinds}) > 1:
            raise BadInputError(f"its times are given as {kinds[1]}, those of the files before as {kinds[0]}")

    def _new(self, current: str | None) -> list[str]:
        """The files not read yet, those that came first first; what has gone from the folder is forgotten."""
        there, done = [], {}
        for entry in os.scandir(self.path):
            if entry.name == current or entry.name.startswith(".") or entry.name.endswith(UNFINISHED):
                continue
            with suppress(FileNotFoundError):  # it has gone again
                if entry.is_file():
                    status, known = entry.stat(), self._done.get(entry.name)
                    now = [entry.name, status.st_mtime_ns, status.st_size]
                    if known is not None and (known == now or known[1] is None):
                        done[entry.name] = known if known == now else now
                    else:
                        there.append((status.st_mtime_ns, entry.name))
        if done != self._done:
            self._done, self._told = done, None
        return [name for _, name in sorted(there)]

    def _position(self, current: str | None, inner: Any) -> dict[str, Any]:
        """done: name, time and size of each file that has been read; the same list until there is one more."""
        columns = None if self.columns is None else self.columns.as_json()
        if self._told is None:
            self._told = list(self._done.values())
        return {"done": self._told, "current": current, "inner": inner, "columns": columns}


def _checked(position: Any) -> dict[str, Any]:
    if position is None:
        return {"done": [], "current": None, "inner": None, "columns": None}
    if not isinstance(position, dict) or not {"done", "current", "inner", "columns"} <= position.keys():
        raise BadInputError(f"this is not a position in a folder: {shortened(repr(position))}")
    return position


def _stamp(done: Any) -> Stamp:
    """Name, time and size of a file that was read; before, only the name was kept."""
    return [done, None, None] if isinstance(done, str) else list(done)


def _identity(path: Path) -> tuple[int | None, int | None, int | None]:
    """When a file was written, its size and which one it is."""
    try:
        status = path.stat()
    except OSError:
        return None, None, None
    return status.st_mtime_ns, status.st_size, status.st_ino
