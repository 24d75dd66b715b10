"""A SQLite database as a sink, with the tables `points` and `alarms`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

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
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sinks.files import SinkOwner, check_folder, check_owner, check_unowned

ROW_NUMBER_COLUMN = "n"


class SqliteSink(BaseSink):
    """Write numbered rows exactly-once, one transaction per batch; others may read.

    The table `limpet` has a row for each other table, with the number of rows written, and the owner with the number of
    rows before it. A run does not append to a table with another owner. Each transaction checks that the table is
    unchanged since the last one, which detects concurrent runs.
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
        check_folder(self.path)
        self.name = f"{' and '.join(self.tables)} in {self.path.resolve()}"
        self._created_tables: set[str] = set()
        self._owner: str | None = None
        with self._wrap_errors():
            self._database = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._check_tables()
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            with transaction(self._database):
                columns = "name text primary key, next integer not null, owner text, since integer"
                self._database.execute(f"create table if not exists limpet ({columns})")
                new = [(name,) for name in self.tables]
                self._database.executemany("insert or ignore into limpet (name, next) values (?, 0)", new)
            self._next = {name: self._read_state(name)[0] for name in self.tables}

    def write(self, results: BatchResult) -> None:
        """Append the rows of a batch in one transaction."""
        if not len(results):
            return
        with self._wrap_errors(), transaction(self._database):
            self._check_unchanged()
            counts = {name: self._insert_rows(name, results) for name in self.tables}
        self._next |= counts

    def flush(self) -> Any:
        """Sync the database and return the numbers of rows as the offset."""
        with self._wrap_errors():
            self._database.execute("pragma synchronous = full")
            with transaction(self._database):
                self._check_unchanged()
                counts = [(count, name) for name, count in self._next.items()]
                self._database.executemany("update limpet set next = ? where name = ?", counts)
            self._database.execute("pragma synchronous = normal")
        return make_offset(self, rows=dict(self._next), owner=self._owner)

    def truncate_to(self, offset: Any) -> None:
        """Delete the rows after the offset."""
        rows = None if offset is None else check_offset(self, offset)["rows"]
        with self._wrap_errors(), transaction(self._database):
            for name in self.tables:
                count, owner = self._read_state(name)
                if rows is None:
                    check_unowned(f"the table {name} of {self.path}", owner, count)
                    self._write_owner(name, None)  # an owner that has not written anything
                    self._next[name] = 0 if self._overwrite else count
                    if self._overwrite:
                        self._database.execute(f"drop table if exists {name}")
                        self._database.execute("update limpet set next = 0 where name = ?", (name,))
                    continue
                known_rows = int(rows[name])
                if count < known_rows:
                    constraint = f"must have the {known_rows} {name} of the checkpoint, got {count}"
                    raise CheckpointError(f"{self.path}: {constraint}.")
                check_owner(f"the table {name} of {self.path}", owner, offset["owner"], count - known_rows)
                if count > known_rows:
                    self._database.execute(f"delete from {name} where n >= ?", (known_rows,))
                    self._database.execute("update limpet set next = ? where name = ?", (known_rows, name))
                self._next[name] = known_rows
        self._owner = None if offset is None else offset["owner"]

    def acquire(self) -> None:
        """Become the owner of what is appended from now on."""
        name = uuid4().hex[:12]
        with self._wrap_errors(), transaction(self._database):
            self._check_unchanged()
            for table, count in self._next.items():
                self._write_owner(table, SinkOwner(name, count))
        self._owner = name

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _check_tables(self) -> None:
        """Refuse a database in which another program has a table with one of the names."""
        tables = "select lower(name) from sqlite_master where type = 'table'"  # SQLite ignores the case of names
        existing = {name for (name,) in self._database.execute(tables)}
        if "limpet" in existing:
            existing -= {name for (name,) in self._database.execute("select name from limpet")}
        if others := sorted(existing.intersection(self.tables)):
            self._database.close()
            constraint = f"its table {others[0]} must not be another program's"
            raise InvalidInputError(f"{self.path}: {constraint}. Give another file.")

    def _read_state(self, name: str) -> tuple[int, SinkOwner | None]:
        query = "select next, owner, since from limpet where name = ?"
        count, owner, since = self._database.execute(query, (name,)).fetchone()
        return count, None if owner is None else SinkOwner(owner, since)

    def _write_owner(self, name: str, owner: SinkOwner | None) -> None:
        values = (None, None) if owner is None else owner
        self._database.execute("update limpet set owner = ?, since = ? where name = ?", (*values, name))

    def _check_unchanged(self) -> None:
        for name in self.tables:
            count, owner = self._read_state(name)
            if count != self._next[name] or (None if owner is None else owner.name) != self._owner:
                raise InvalidInputError(f"{self.path}: another run writes to its table {name}. Give another file.")

    def _insert_rows(self, name: str, results: BatchResult) -> int:
        """Insert the rows of one table and return the number of rows then."""
        rows, first = to_rows(results, name), self._next[name]
        if name not in self._created_tables:
            columns = [_to_utf8(column).replace("\0", "?") for column in get_column_names(results, name)]
            self._create_table(name, dedupe_names(columns, [ROW_NUMBER_COLUMN]))
        if rows:
            numbered = ((first + i, *map(_to_sql_value, row)) for i, row in enumerate(rows))
            placeholders = ", ".join("?" * (1 + len(rows[0])))
            self._database.executemany(f"insert into {name} values ({placeholders})", numbered)
            self._database.execute("update limpet set next = ? where name = ?", (first + len(rows), name))
        return first + len(rows)

    def _create_table(self, name: str, columns: Sequence[str]) -> None:
        """Create the table; an existing one must have these columns."""
        column_list = ", ".join([f"{ROW_NUMBER_COLUMN} integer primary key", *map(_quote, columns)])
        self._database.execute(f"create table if not exists {name} ({column_list})")
        existing = [row[1] for row in self._database.execute(f"pragma table_info({name})")][1:]
        if existing != list(columns):
            raise InvalidInputError(
                f"{self.path}: its table {name} must have the columns {', '.join(columns)}, got {', '.join(existing)}. "
                "Give another file."
            )
        self._created_tables.add(name)

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InvalidInputError(f"{self.path}: cannot be written: {error}.") from None


def _quote(name: str) -> str:
    """Quote a name for SQL.

    >>> _quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _to_sql_value(value: Any) -> Any:
    text = " ".join(value) if isinstance(value, list) else value
    return _to_utf8(text) if isinstance(text, str) else text


def _to_utf8(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()
