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
from holdfast.streams.source import Source
from holdfast.streams.times import ISO, ZONED

log = logging.getLogger("holdfast.streams")
LOOK = 0.4  # seconds until one looks again whether a file has come
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".swp")
WRONG_FILE = "a file that cannot be read"


class Folder:
    """The files of a folder one after another, each to its end: those that came first, first.

    A file is taken as finished when it is there: write it under a name that begins with a point or ends in .tmp or
    .part, and rename it. What the columns are is decided by the first file. One that cannot be read, or lacks a
    column, is passed over, and told of. follow: wait for more.

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

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        told = position or {"done": [], "current": None, "inner": None, "columns": None}
        self.columns = columns_at(told)
        done, current, inner = list(told["done"]), told["current"], told["inner"]
        waiting: list[str] = []
        while True:
            waiting = waiting or self._new([*done, current])
            current = current or (waiting.pop(0) if waiting else None)
            if current is None:
                if not self.follow:
                    return
                time.sleep(LOOK)
                yield Batch(np.zeros((0, 1)), self._position(done, None, None))
                continue
            yield from self._of_file(done, current, inner)
            done, current, inner = [*done, current], None, None
            yield Batch(np.zeros((0, 1)), self._position(done, None, None))

    def _of_file(self, done: list[str], name: str, inner: Any) -> Iterator[Batch]:
        wanted = self.columns.wanted if self.columns else self.wanted
        try:
            source = self._opened(self.path / name, wanted)
            for batch in source.read(inner):
                self._agree(getattr(source, "columns", None))
                batch.position = self._position(done, name, batch.position)
                yield batch
        except (HoldfastError, OSError) as error:
            log.error("%s is passed over: %s", self.path / name, error)
            bad = Batch(np.zeros((0, 1)), self._position([*done, name], None, None), n_records=1)
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

    def _new(self, done: list[str]) -> list[str]:
        """The files not read yet, those that came first first."""
        known = set(done)
        there = []
        for entry in os.scandir(self.path):
            if entry.name in known or entry.name.startswith(".") or entry.name.endswith(UNFINISHED):
                continue
            with suppress(FileNotFoundError):  # it has gone again
                if entry.is_file():
                    there.append((entry.stat().st_mtime_ns, entry.name))
        return [name for _, name in sorted(there)]

    def _position(self, done: list[str], current: str | None, inner: Any) -> dict[str, Any]:
        columns = None if self.columns is None else self.columns.as_json()
        return {"done": done, "current": current, "inner": inner, "columns": columns}
