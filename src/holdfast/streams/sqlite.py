"""A database of SQLite as a sink: the tables `points` and `alarms`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.owners import Owner, new_owner, require_free, require_own
from holdfast.streams.results import Results, free_names
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.tables import ALARMS, POINTS, check_what, columns_of, rows_of
from holdfast.transactions import at_once

NUMBER = "n"  # the column that has the number of a row


class Sqlite(Sink):
    """Rows of tables, numbered in the order in which they were told.

    path: of the database, made if it is not there. what: "alarms", "points", or both. anew: whether rows that are there
    are written over.
    Others may read while it is written. A row is there as soon as its batch has been learnt.

    Its table `holdfast` has a row for each of the others: how many rows it has had, and which run can go back in it, if
    there is one, with how many there were before. No other run adds to it then. Each batch is written only if the table
    is as this run has left it, so that two at a time are noticed as well.
    """

    alone = True

    def __init__(
        self, path: str | os.PathLike[str], what: str | Sequence[str] = (ALARMS, POINTS), *, anew: bool = False
    ) -> None:
        self.path, self._anew = Path(path), anew
        self.what = tuple(map(check_what, (what,) if isinstance(what, str) else what))
        if not self.path.absolute().parent.is_dir():
            raise BadInputError(f"{self.path} cannot be written: there is no folder {self.path.parent}")
        self.name = f"{' and '.join(self.what)} in {self.path.resolve()}"
        self._made: set[str] = set()  # tables that are known to be right
        self._owner: str | None = None
        with self._told():
            self._database = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            with at_once(self._database):
                self._database.execute(
                    "create table if not exists holdfast "
                    "(name text primary key, next integer not null, owner text, since integer)"
                )
                for name in self.what:
                    self._database.execute("insert or ignore into holdfast (name, next) values (?, 0)", (name,))
            self._next = {name: self._found(name)[0] for name in self.what}

    def write(self, results: Results) -> None:
        """Adds the rows of a batch, all or none."""
        if not len(results):
            return
        with self._told(), at_once(self._database):
            self._require_unchanged()
            counts = {name: self._add(name, results) for name in self.what}
        self._next |= counts

    def flush(self) -> Any:
        """How many rows each table has had; they are on the disk."""
        with self._told():
            self._database.execute("pragma synchronous = full")
            with at_once(self._database):
                self._require_unchanged()
                for name, count in self._next.items():
                    self._database.execute("update holdfast set next = ? where name = ?", (count, name))
            self._database.execute("pragma synchronous = normal")
        return mark_of(self, rows=dict(self._next), owner=self._owner)

    def rewind(self, mark: Any) -> None:
        """Takes out the rows that came after the mark."""
        rows = None if mark is None else parts_of(self, mark)["rows"]
        with self._told(), at_once(self._database):
            for name in self.what:
                count, owner = self._found(name)
                if rows is None:
                    require_free(f"the table {name} of {self.path}", owner, count)
                    self._write_owner(name, None)  # one that has added nothing
                    self._next[name] = 0 if self._anew else count
                    if self._anew:
                        self._database.execute(f"drop table if exists {name}")
                        self._database.execute("update holdfast set next = 0 where name = ?", (name,))
                    continue
                known = int(rows[name])
                if count < known:
                    raise CheckpointError(f"{self.path} has had {count} {name}, the checkpoint knows of {known}")
                require_own(f"the table {name} of {self.path}", owner, mark["owner"], count - known)
                if count > known:
                    self._database.execute(f"delete from {name} where n >= ?", (known,))
                    self._database.execute("update holdfast set next = ? where name = ?", (known, name))
                self._next[name] = known
        self._owner = None if mark is None else mark["owner"]

    def claim(self) -> None:
        """What is added from now on is this run's alone."""
        name = new_owner(0).name
        with self._told(), at_once(self._database):
            self._require_unchanged()
            for table, count in self._next.items():
                self._write_owner(table, Owner(name, count))
        self._owner = name

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def _found(self, name: str) -> tuple[int, Owner | None]:
        """How many rows a table has had, and whose it is."""
        asked = "select next, owner, since from holdfast where name = ?"
        count, owner, since = self._database.execute(asked, (name,)).fetchone()
        return count, None if owner is None else Owner(owner, since)

    def _write_owner(self, name: str, owner: Owner | None) -> None:
        told = (None, None) if owner is None else owner
        self._database.execute("update holdfast set owner = ?, since = ? where name = ?", (*told, name))

    def _require_unchanged(self) -> None:
        """That nobody else has written since."""
        for name in self.what:
            count, owner = self._found(name)
            if count != self._next[name] or (None if owner is None else owner.name) != self._owner:
                raise BadInputError(f"another run writes to the table {name} of {self.path}: give another file")

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
