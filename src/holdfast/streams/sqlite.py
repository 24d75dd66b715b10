"""A database of SQLite as a sink: the tables `points` and `alarms`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.results import Results, free_names
from holdfast.streams.sink import Sink
from holdfast.streams.tables import ALARMS, POINTS, check_what, columns_of, rows_of
from holdfast.transactions import at_once

NUMBER = "n"  # the column that has the number of a row


class Sqlite(Sink):
    """Rows of tables, numbered in the order in which they were told.

    path: of the database, made if it is not there. what: "alarms", "points", or both.
    Others may read while it is written. A row is there as soon as its batch has been learnt.
    """

    def __init__(self, path: str | os.PathLike[str], what: str | Sequence[str] = (ALARMS, POINTS)) -> None:
        self.path = Path(path)
        self.what = tuple(map(check_what, (what,) if isinstance(what, str) else what))
        if not self.path.absolute().parent.is_dir():
            raise BadInputError(f"{self.path} cannot be written: there is no folder {self.path.parent}")
        self._made: set[str] = set()  # tables that are known to be right
        with self._told():
            self._database = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            self._database.execute("create table if not exists holdfast (name text primary key, next integer not null)")
            for name in self.what:
                self._database.execute("insert or ignore into holdfast values (?, 0)", (name,))
            self._next = {name: self._counted(name) for name in self.what}

    def write(self, results: Results) -> None:
        """Adds the rows of a batch, all or none."""
        if not len(results):
            return
        with self._told(), at_once(self._database):
            counts = {name: self._add(name, results) for name in self.what}
        self._next |= counts

    def flush(self) -> dict[str, int]:
        """How many rows each table has had; they are on the disk."""
        with self._told():
            self._database.execute("pragma synchronous = full")
            with at_once(self._database):
                for name, count in self._next.items():
                    self._database.execute("update holdfast set next = ? where name = ?", (count, name))
            self._database.execute("pragma synchronous = normal")
        return dict(self._next)

    def rewind(self, mark: Any) -> None:
        """Takes out the rows that came after the mark."""
        if mark is None:
            return
        with self._told(), at_once(self._database):
            for name in self.what:
                count, known = self._counted(name), int(mark.get(name, 0))
                if count < known:
                    raise CheckpointError(f"{self.path} has had {count} {name}, the checkpoint knows of {known}")
                if count > known:
                    self._database.execute(f"delete from {name} where n >= ?", (known,))
                    self._database.execute("update holdfast set next = ? where name = ?", (known, name))
                self._next[name] = known

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def _counted(self, name: str) -> int:
        return int(self._database.execute("select next from holdfast where name = ?", (name,)).fetchone()[0])

    def _add(self, name: str, results: Results) -> int:
        """Adds the rows of one table; how many it has had then."""
        rows, first = rows_of(results, name), self._next[name]
        if name not in self._made:
            self._make(name, free_names([_name(one) for one in columns_of(results, name)], [NUMBER]))
        if rows:
            numbered = ((first + i, *map(_value, row)) for i, row in enumerate(rows))
            marks = ", ".join("?" * (1 + len(rows[0])))
            self._database.executemany(f"insert into {name} values ({marks})", numbered)
            self._database.execute("update holdfast set next = ? where name = ?", (first + len(rows), name))
        return first + len(rows)

    def _make(self, name: str, columns: Sequence[str]) -> None:
        """The table, if it is not there; one that is there must have these columns."""
        listed = ", ".join(map(_quoted, columns))
        self._database.execute(f"create table if not exists {name} ({NUMBER} integer primary key, {listed})")
        found = [row[1] for row in self._database.execute(f"pragma table_info({name})")][1:]
        if found != list(columns):
            raise BadInputError(
                f"the table {name} of {self.path} has other columns: {', '.join(found)}; expected "
                f"{', '.join(columns)}. Give the name of another file"
            )
        self._made.add(name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite in words."""
        try:
            yield
        except sqlite3.Error as error:
            raise BadInputError(f"{self.path} could not be written: {error}") from None


def _quoted(name: str) -> str:
    """A name as SQL takes it.

    >>> _quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _value(value: Any) -> Any:
    """A value as a column holds it."""
    if isinstance(value, list):
        value = " ".join(value)
    return _text(value) if isinstance(value, str) else value


def _name(text: str) -> str:
    """A name that SQL can hold, which ends at a zero."""
    return _text(text).replace("\0", "?")


def _text(text: str) -> str:
    """A text that UTF-8 can write."""
    return text if text.isascii() else text.encode(errors="replace").decode()
