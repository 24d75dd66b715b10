"""States of streams that had to leave a fleet, on disk until they come again: a table of SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet.keys import Key
from holdfast.scheme.state import Vector

TABLES = (
    "create table if not exists fleet (description text not null)",
    "create table if not exists streams (key primary key, state blob not null, start blob not null) without rowid",
)


class Spill:
    """A file with the states of streams; one that is already there must be of a fleet of the same description."""

    def __init__(self, path: str | os.PathLike[str], description: str) -> None:
        if not Path(path).absolute().parent.is_dir():
            raise BadInputError(f"spill: there is no folder {Path(path).absolute().parent}")
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            for table in TABLES:
                self._database.execute(table)
            found = self._database.execute("select description from fleet").fetchone()
        except sqlite3.DatabaseError as error:
            raise CheckpointError(f"spill: {path} is not a file of spilled states: {error}") from None
        if found is None:
            self._database.execute("insert into fleet values (?)", (description,))
        elif found[0] != description:
            raise CheckpointError(f"spill: {path} holds the states of another fleet: {found[0]}")

    def put(self, key: Key, state: Vector, start: Vector) -> None:
        """Keeps a state."""
        self._database.execute(
            "insert or replace into streams values (?, ?, ?)", (key, state.tobytes(), start.tobytes())
        )

    def take(self, key: Key) -> tuple[Vector, Vector] | None:
        """The state of a key, which is kept no longer; None if there is none."""
        found = self._database.execute("select state, start from streams where key = ?", (key,)).fetchone()
        if found is None:
            return None
        self.drop(key)
        return _numbers(found[0]), _numbers(found[1])

    def drop(self, key: Key) -> bool:
        """Forgets a key; whether it was there."""
        return self._database.execute("delete from streams where key = ?", (key,)).rowcount > 0

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str | int):
            return False
        return self._database.execute("select 1 from streams where key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        return int(self._database.execute("select count(*) from streams").fetchone()[0])

    def items(self) -> Iterator[tuple[Key, Vector, Vector]]:
        """Everything that is kept."""
        for key, state, start in self._database.execute("select key, state, start from streams"):
            yield key, _numbers(state), _numbers(start)

    def together(self, on: bool) -> None:
        """Begins or ends what is to be written at once."""
        self._database.execute("begin" if on else "commit")

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


def _numbers(data: bytes) -> Vector:
    return np.frombuffer(data, np.float64).copy()
