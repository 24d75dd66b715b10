"""States of streams that had to leave a fleet, on disk until they come again: a table of SQLite."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from limpet._sqlite import transaction
from limpet.core.state import Vector
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet._key_index import Key

FORMAT_VERSION = 1
CREATE_TABLES_SQL = (
    "create table if not exists fleet (format integer, model text, width integer, state_size integer)",
    "create table if not exists streams "
    "(key primary key, state blob not null, start blob not null, sum integer not null) without rowid",
)

SpilledState = tuple[Key, Vector, Vector]


class Spill:
    """A file with the states of streams, in use by one fleet at a time.

    What is there already must be of a fleet with the same model; its streams come back when their keys come.
    """

    def __init__(self, path: str | os.PathLike[str], model: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InvalidInputError(f"spill: expected the name of a file, got {path!r}")
        self.path = Path(path)
        if not self.path.absolute().parent.is_dir():
            raise InvalidInputError(f"spill: there is no folder {self.path.absolute().parent}")
        if self.path.is_dir():
            raise InvalidInputError(f"spill: {self.path} is a folder")
        with self._translate_errors("cannot be used"):
            self._database = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            self._database.execute("pragma locking_mode = exclusive")
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            with transaction(self._database):
                for table in CREATE_TABLES_SQL:
                    self._database.execute(table)
                header = self._database.execute("select format, model from fleet").fetchone()
                if header is None:
                    self._database.execute("insert into fleet values (?, ?, null, null)", (FORMAT_VERSION, model))
        if header is not None and header != (FORMAT_VERSION, model):
            raise CheckpointError(f"spill: {self.path} holds the states of another fleet: {header[1]}")

    @property
    def width(self) -> int | None:
        """How many variables the streams have that are here, None if that is open."""
        with self._translate_errors():
            width: int | None = self._database.execute("select width from fleet").fetchone()[0]
        return width

    def set_dimensions(self, width: int, state_size: int) -> None:
        """All states are of this kind from now on."""
        with self._translate_errors(), transaction(self._database):
            dimensions = self._database.execute("select width, state_size from fleet").fetchone()
            if dimensions == (None, None):
                self._database.execute("update fleet set width = ?, state_size = ?", (width, state_size))
            elif dimensions != (width, state_size):
                raise CheckpointError(
                    f"spill: {self.path} holds states of {dimensions[1]} numbers for {dimensions[0]} variables, "
                    f"not of {state_size} for {width}"
                )

    def exchange(self, evicted: Iterable[SpilledState], admitted: Sequence[Key]) -> dict[Key, tuple[Vector, Vector]]:
        """Keeps the states of some keys, and gives back those of others that are here; both or nothing."""
        with self._translate_errors(), transaction(self._database):
            restored = {}
            is_empty = self._database.execute("select 1 from streams limit 1").fetchone() is None
            for key in () if is_empty else admitted:
                record = self._database.execute(
                    "select state, start, sum from streams where key = ?", (key,)
                ).fetchone()
                if record is not None:
                    restored[key] = self._read(key, *record)
            self._database.executemany("delete from streams where key = ?", ((key,) for key in restored))
            self._put(evicted)
        return restored

    def replace_all(self, streams: Iterable[SpilledState]) -> None:
        """These and no others are here."""
        with self._translate_errors(), transaction(self._database):
            self._database.execute("delete from streams")
            self._put(streams)

    def remove(self, key: Key) -> bool:
        """Forgets a key; whether it was there."""
        with self._translate_errors():
            return self._database.execute("delete from streams where key = ?", (key,)).rowcount > 0

    def __contains__(self, key: Key) -> bool:
        with self._translate_errors():
            return self._database.execute("select 1 from streams where key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        with self._translate_errors():
            return int(self._database.execute("select count(*) from streams").fetchone()[0])

    def items(self) -> Iterator[SpilledState]:
        """Everything that is kept."""
        with self._translate_errors():
            for key, *record in self._database.execute("select key, state, start, sum from streams"):
                yield key, *self._read(key, *record)

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def _put(self, streams: Iterable[SpilledState]) -> None:
        rows = ((key, state.tobytes(), start.tobytes()) for key, state, start in streams)
        self._database.executemany(
            "insert or replace into streams values (?, ?, ?, ?)", ((*row, _checksum(*row[1:])) for row in rows)
        )

    def _read(self, key: Key, state: bytes, start: bytes, checksum: int) -> tuple[Vector, Vector]:
        if _checksum(state, start) != checksum:
            raise CheckpointError(f"spill: what {self.path} holds of {key!r} is damaged")
        return np.frombuffer(state).copy(), np.frombuffer(start).copy()

    @contextmanager
    def _translate_errors(self, failure: str = "could not be read or written") -> Iterator[None]:
        """Errors of SQLite in words."""
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as error:
            reason = "another fleet has it open" if "locked" in str(error) else error
            raise CheckpointError(f"spill: {self.path} {failure}: {reason}") from None


def _checksum(state: bytes, start: bytes) -> int:
    return zlib.crc32(start, zlib.crc32(state))
