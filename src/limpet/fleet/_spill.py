"""Store the states of evicted streams in an SQLite file until their keys return."""

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
    "create table if not exists fleet (format integer, learner text, width integer, state_size integer)",
    "create table if not exists streams "
    "(key primary key, state blob not null, start blob not null, sum integer not null) without rowid",
)

SpilledState = tuple[Key, Vector, Vector]


class Spill:
    """A file with the states of evicted streams, used by one fleet at a time.

    An existing file must be of a fleet with the same learner; it continues to be used.
    """

    def __init__(self, path: str | os.PathLike[str], learner: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InvalidInputError(f"spill: must be the name of a file, got {path!r}.")
        self.path = Path(path)
        if not self.path.absolute().parent.is_dir():
            raise InvalidInputError(f"spill: must be in an existing folder, got {self.path}.")
        if self.path.is_dir():
            raise InvalidInputError(f"spill: must be a file, got the folder {self.path}.")
        with self._translate_errors("cannot be used"):
            self._database = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            self._database.execute("pragma locking_mode = exclusive")
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            with transaction(self._database):
                for table in CREATE_TABLES_SQL:
                    self._database.execute(table)
                header = self._database.execute("select format, learner from fleet").fetchone()
                if header is None:
                    self._database.execute("insert into fleet values (?, ?, null, null)", (FORMAT_VERSION, learner))
        if header is not None and header != (FORMAT_VERSION, learner):
            raise CheckpointError(f"spill: must be a file of this fleet, got {self.path} of another: {header[1]}.")

    @property
    def width(self) -> int | None:
        """The number of variables of the stored streams, None if not yet known."""
        with self._translate_errors():
            return self._database.execute("select width from fleet").fetchone()[0]

    def set_dimensions(self, width: int, state_size: int) -> None:
        """Set the number of variables and the size of a state, or check them if set."""
        with self._translate_errors(), transaction(self._database):
            dimensions = self._database.execute("select width, state_size from fleet").fetchone()
            if dimensions == (None, None):
                self._database.execute("update fleet set width = ?, state_size = ?", (width, state_size))
            elif dimensions != (width, state_size):
                raise CheckpointError(
                    f"spill: states must have {state_size} numbers for {width} variables, got {dimensions[1]} "
                    f"for {dimensions[0]} in {self.path}."
                )

    def exchange(self, evicted: Iterable[SpilledState], admitted: Sequence[Key]) -> dict[Key, tuple[Vector, Vector]]:
        """Store evicted states, remove and return those of admitted keys, atomically."""
        with self._translate_errors(), transaction(self._database):
            restored = {}
            is_empty = self._database.execute("select 1 from streams limit 1").fetchone() is None
            for key in () if is_empty else admitted:
                cursor = self._database.execute("select state, start, sum from streams where key = ?", (key,))
                if (record := cursor.fetchone()) is not None:
                    restored[key] = self._read(key, *record)
            self._database.executemany("delete from streams where key = ?", ((key,) for key in restored))
            self._put(evicted)
        return restored

    def replace_all(self, streams: Iterable[SpilledState]) -> None:
        with self._translate_errors(), transaction(self._database):
            self._database.execute("delete from streams")
            self._put(streams)

    def remove(self, key: Key) -> bool:
        """Remove a key; return whether it was stored."""
        with self._translate_errors():
            return self._database.execute("delete from streams where key = ?", (key,)).rowcount > 0

    def __contains__(self, key: Key) -> bool:
        with self._translate_errors():
            return self._database.execute("select 1 from streams where key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        with self._translate_errors():
            return int(self._database.execute("select count(*) from streams").fetchone()[0])

    def items(self) -> Iterator[SpilledState]:
        """Yield the key, the state and the start buffer of each stored stream."""
        with self._translate_errors():
            for key, *record in self._database.execute("select key, state, start, sum from streams"):
                yield key, *self._read(key, *record)

    def close(self) -> None:
        self._database.close()

    def _put(self, streams: Iterable[SpilledState]) -> None:
        rows = ((key, state.tobytes(), start.tobytes()) for key, state, start in streams)
        self._database.executemany(
            "insert or replace into streams values (?, ?, ?, ?)", ((*row, _checksum(*row[1:])) for row in rows)
        )

    def _read(self, key: Key, state: bytes, start: bytes, checksum: int) -> tuple[Vector, Vector]:
        if _checksum(state, start) != checksum:
            raise CheckpointError(f"spill: the state of {key!r} in {self.path} is corrupted.")
        return np.frombuffer(state).copy(), np.frombuffer(start).copy()

    @contextmanager
    def _translate_errors(self, failure: str = "could not be read or written") -> Iterator[None]:
        """Raise errors of SQLite as CheckpointError."""
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as error:
            reason = "another fleet has it open" if "locked" in str(error) else error
            raise CheckpointError(f"spill: {self.path} {failure}: {reason}.") from None


def _checksum(state: bytes, start: bytes) -> int:
    return zlib.crc32(start, zlib.crc32(state))
