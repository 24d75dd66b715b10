"""A database of SQLite as a sink: the tables `points` and `alarms`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from limpet._sqlite import transaction
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.results import (
    ALARMS_TABLE,
    POINTS_TABLE,
    BatchResult,
    check_table,
    dedupe_names,
    get_column_names,
    to_rows,
)
from limpet.streams.sinks._ownership import SinkOwner, check_owner, check_unowned, make_owner
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset

ROW_NUMBER_COLUMN = "n"  # the column that has the number of a row


class SqliteSink(BaseSink):
    """Rows of tables, numbered in the order in which they were told.

    path: of the database, made if it is not there. what: "alarms", "points", or both. anew: whether rows that are there
    are written over.
    Others may read while it is written. A row is there as soon as its batch has been learnt.

    Its table `limpet` has a row for each of the others: how many rows it has had, and which run can go back in it, if
    there is one, with how many there were before. No other run adds to it then. Each batch is written only if the table
    is as this run has left it, so that two at a time are noticed as well.
    """

    is_exclusive = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: str | Sequence[str] = (ALARMS_TABLE, POINTS_TABLE),
        *,
        overwrite: bool = False,
    ) -> None:
        self.path, self._overwrite = Path(path), overwrite
        self.tables = tuple(map(check_table, (tables,) if isinstance(tables, str) else tables))
        if not self.path.absolute().parent.is_dir():
            raise InvalidInputError(f"{self.path} cannot be written: there is no folder {self.path.parent}")
        self.name = f"{' and '.join(self.tables)} in {self.path.resolve()}"
        self._created_tables: set[str] = set()  # tables that are known to be right
        self._owner: str | None = None
        with self._wrap_errors():
            self._database = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            with transaction(self._database):
                self._database.execute(
                    "create table if not exists limpet "
                    "(name text primary key, next integer not null, owner text, since integer)"
                )
                for name in self.tables:
                    self._database.execute("insert or ignore into limpet (name, next) values (?, 0)", (name,))
            self._next = {name: self._read_state(name)[0] for name in self.tables}

    def write(self, results: BatchResult) -> None:
        """Adds the rows of a batch, all or none."""
        if not len(results):
            return
        with self._wrap_errors(), transaction(self._database):
            self._check_unchanged()
            counts = {name: self._insert_rows(name, results) for name in self.tables}
        self._next |= counts

    def flush(self) -> Any:
        """How many rows each table has had; they are on the disk."""
        with self._wrap_errors():
            self._database.execute("pragma synchronous = full")
            with transaction(self._database):
                self._check_unchanged()
                for name, count in self._next.items():
                    self._database.execute("update limpet set next = ? where name = ?", (count, name))
            self._database.execute("pragma synchronous = normal")
        return make_offset(self, rows=dict(self._next), owner=self._owner)

    def truncate_to(self, offset: Any) -> None:
        """Takes out the rows that came after the mark."""
        rows = None if offset is None else check_offset(self, offset)["rows"]
        with self._wrap_errors(), transaction(self._database):
            for name in self.tables:
                count, owner = self._read_state(name)
                if rows is None:
                    check_unowned(f"the table {name} of {self.path}", owner, count)
                    self._write_owner(name, None)  # one that has added nothing
                    self._next[name] = 0 if self._overwrite else count
                    if self._overwrite:
                        self._database.execute(f"drop table if exists {name}")
                        self._database.execute("update limpet set next = 0 where name = ?", (name,))
                    continue
                known_rows = int(rows[name])
                if count < known_rows:
                    raise CheckpointError(f"{self.path} has had {count} {name}, the checkpoint knows of {known_rows}")
                check_owner(f"the table {name} of {self.path}", owner, offset["owner"], count - known_rows)
                if count > known_rows:
                    self._database.execute(f"delete from {name} where n >= ?", (known_rows,))
                    self._database.execute("update limpet set next = ? where name = ?", (known_rows, name))
                self._next[name] = known_rows
        self._owner = None if offset is None else offset["owner"]

    def acquire(self) -> None:
        """What is added from now on is this run's alone."""
        name = make_owner(0).name
        with self._wrap_errors(), transaction(self._database):
            self._check_unchanged()
            for table, count in self._next.items():
                self._write_owner(table, SinkOwner(name, count))
        self._owner = name

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def _read_state(self, name: str) -> tuple[int, SinkOwner | None]:
        """How many rows a table has had, and whose it is."""
        query = "select next, owner, since from limpet where name = ?"
        count, owner, since = self._database.execute(query, (name,)).fetchone()
        return count, None if owner is None else SinkOwner(owner, since)

    def _write_owner(self, name: str, owner: SinkOwner | None) -> None:
        values = (None, None) if owner is None else owner
        self._database.execute("update limpet set owner = ?, since = ? where name = ?", (*values, name))

    def _check_unchanged(self) -> None:
        """That nobody else has written since."""
        for name in self.tables:
            count, owner = self._read_state(name)
            if count != self._next[name] or (None if owner is None else owner.name) != self._owner:
                raise InvalidInputError(f"another run writes to the table {name} of {self.path}: give another file")

    def _insert_rows(self, name: str, results: BatchResult) -> int:
        """Adds the rows of one table; how many it has had then."""
        rows, first = to_rows(results, name), self._next[name]
        if name not in self._created_tables:
            self._create_table(
                name,
                dedupe_names([_to_sql_name(column) for column in get_column_names(results, name)], [ROW_NUMBER_COLUMN]),
            )
        if rows:
            numbered = ((first + i, *map(_to_sql_value, row)) for i, row in enumerate(rows))
            placeholders = ", ".join("?" * (1 + len(rows[0])))
            self._database.executemany(f"insert into {name} values ({placeholders})", numbered)
            self._database.execute("update limpet set next = ? where name = ?", (first + len(rows), name))
        return first + len(rows)

    def _create_table(self, name: str, columns: Sequence[str]) -> None:
        """The table, if it is not there; one that is there must have these columns."""
        column_list = ", ".join(map(_quote, columns))
        self._database.execute(
            f"create table if not exists {name} ({ROW_NUMBER_COLUMN} integer primary key, {column_list})"
        )
        existing = [row[1] for row in self._database.execute(f"pragma table_info({name})")][1:]
        if existing != list(columns):
            raise InvalidInputError(
                f"the table {name} of {self.path} has other columns: {', '.join(existing)}; expected "
                f"{', '.join(columns)}. Give the name of another file"
            )
        self._created_tables.add(name)

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        """Errors of SQLite in words."""
        try:
            yield
        except sqlite3.Error as error:
            raise InvalidInputError(f"{self.path} could not be written: {error}") from None


def _quote(name: str) -> str:
    """A name as SQL takes it.

    >>> _quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _to_sql_value(value: Any) -> Any:
    """A value as a column holds it."""
    if isinstance(value, list):
        value = " ".join(value)
    return _to_utf8(value) if isinstance(value, str) else value


def _to_sql_name(text: str) -> str:
    """A name that SQL can hold, which ends at a zero."""
    return _to_utf8(text).replace("\0", "?")


def _to_utf8(text: str) -> str:
    """A text that UTF-8 can write."""
    return text if text.isascii() else text.encode(errors="replace").decode()
