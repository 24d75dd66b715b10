"""A folder into which files are moved, as a source."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from limpet._format import truncate
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.batch import Batch
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec, Schema
from limpet.streams.sources.base import BaseSource
from limpet.streams.timestamps import ISO_FORMAT, ZONED_ISO_FORMAT

log = logging.getLogger("limpet.streams")
POLL_INTERVAL_S = 0.4  # between scans for new files
MAX_SCAN_SHARE = 0.05  # of the time
UNFINISHED_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", ".swp")
UNREADABLE_FILE = "unreadable file"
FileStamp = list[Any]  # name, modification time and size


class DirectorySource(BaseSource):
    """The files of a folder, oldest first, each to its end; `open_source` opens one.

    A file must be complete when it appears: write it under a name that starts with a dot or ends in .tmp or .part, and
    rename it. The columns are those of the first file. A file that cannot be read, or lacks a column, is skipped, and
    logged as an error. A file that replaces one that was read is read as well; a deleted file is forgotten.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        open_source: Callable[[Path, ColumnSpec], BaseSource],
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        follow: bool = True,
    ) -> None:
        self.path, self.spec, self.follow = Path(path), spec, follow
        if not self.path.is_dir():
            raise InvalidInputError(f"source: must be an existing folder, got {self.path}.")
        self._open_source = open_source
        self._done: dict[str, FileStamp] = {}
        self._done_list: list[FileStamp] | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position {"done": …, "current": …, "inner": …}."""
        state = {"done": [], "current": None, "inner": None} if position is None else position
        if not isinstance(state, dict) or not {"done", "current", "inner"} <= state.keys():
            raise InvalidInputError(f"position: must be one of a folder, got {truncate(repr(position))}.")
        self.schema = None if position is None else self.schema
        self._done_list = None
        self._done = {stamp[0]: stamp for stamp in map(list, state["done"])}
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
                yield self._make_empty_batch()
                continue
            yield from self._read_file(current, inner)
            current, inner = None, None
            yield self._make_empty_batch()

    def _read_file(self, name: str, inner: Any) -> Iterator[Batch]:
        spec = self.schema.spec if self.schema else self.spec
        path = self.path / name
        before, error = _read_file_identity(path), None
        try:
            source = self._open_source(path, spec)
            source.schema = self.schema if inner is not None else source.schema
            for batch in source.read(inner):
                self._check_time_kind(batch.schema)
                batch.position = self._position(name, batch.position)
                yield batch
        except (LimpetError, OSError) as wrong:
            error = wrong
        after = _read_file_identity(path)  # the file can have grown; a file that has replaced it is still to be read
        stamp = (after if before[2] == after[2] and error is None else before)[:2]
        if stamp[0] is not None:  # else it was deleted
            self._done[name], self._done_list = [name, *stamp], None
        if error is not None:
            log.error("%s was skipped: %s", path, error)
            error_batch = self._make_empty_batch(n_records=1)
            error_batch.malformed.add(UNREADABLE_FILE, 0, f"{name}: {error}")
            yield error_batch

    def _check_time_kind(self, schema: Schema | None) -> None:
        """Adopt the columns of the first file; raise if the kind of later times differs."""
        if self.schema is None:
            self.schema = schema
            return
        kinds = [None if candidate is None else candidate.time_kind for candidate in (self.schema, schema)]
        if schema is not None and len({ISO_FORMAT if kind == ZONED_ISO_FORMAT else kind for kind in kinds}) > 1:
            raise InvalidInputError(f"time: must be given as {kinds[0]}, as in the files before, got {kinds[1]}.")

    def _list_new_files(self, current: str | None) -> list[str]:
        """Return the files to be read, oldest first, and forget deleted files."""
        new_files, done = [], {}
        for entry in os.scandir(self.path):
            if entry.name == current or entry.name.startswith(".") or entry.name.endswith(UNFINISHED_SUFFIXES):
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                if entry.is_file():
                    status, known = entry.stat(), self._done.get(entry.name)
                    stamp = [entry.name, status.st_mtime_ns, status.st_size]
                    if known == stamp:
                        done[entry.name] = stamp
                    else:
                        new_files.append((status.st_mtime_ns, entry.name))
        if done != self._done:
            self._done, self._done_list = done, None
        return [name for _, name in sorted(new_files)]

    def _position(self, current: str | None, inner: Any) -> dict[str, Any]:
        """Return a position; the list of files read is shared while it does not change."""
        if self._done_list is None:
            self._done_list = list(self._done.values())
        return {"done": self._done_list, "current": current, "inner": inner}

    def _make_empty_batch(self, n_records: int = -1) -> Batch:
        return Batch(np.zeros((0, 1)), self._position(None, None), schema=self.schema, n_records=n_records)


def _read_file_identity(path: Path) -> tuple[int | None, int | None, int | None]:
    try:
        status = path.stat()
    except OSError:
        return None, None, None
    return status.st_mtime_ns, status.st_size, status.st_ino
