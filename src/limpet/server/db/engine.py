"""Opens the store: an SQLite file by default, a PostgreSQL database by its URL."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import orjson
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnection

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.server.db.schema import META_TABLE, METADATA
from limpet.streams.sinks._ownership import try_lock

# Many rows at once. SQLAlchemy's own way takes three times as long with SQLite, and a hundred with PostgreSQL.


def bulk_insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Adds rows, each with a value for every column in order."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_insert_with_placeholders(table), list(rows))
        return
    if any(isinstance(value, bytes | memoryview) for value in rows[0]):  # which JSON cannot hold
        names = list(table.columns.keys())
        connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])
        return
    names = [str(column.name) for column in table.columns]
    payload = orjson.dumps([dict(zip(names, row, strict=True)) for row in rows]).decode()
    connection.execute(text(_insert_from_json(table, str(connection.dialect.name))), {"rows": payload})


@cache
def _insert_with_placeholders(table: Table) -> str:
    return f"insert into {table.name} values ({', '.join('?' for _ in table.columns)})"


@cache
def _insert_from_json(table: Table, _: str) -> str:
    from sqlalchemy.dialects import postgresql

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    columns = ", ".join(f'"{column.name}" {column.type.compile(dialect)}' for column in table.columns)
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    return (
        f"insert into {table.name} ({names}) select {names} from json_to_recordset(cast(:rows as json)) as t({columns})"
    )


STORE_FORMAT = 1
ADVISORY_LOCK_ID = 7_235_418_120_554_511  # the number of our lock among those of a PostgreSQL database


MAX_WAL_PAGES = 16_384  # pages of SQLite's log, after which a commit has to wait until it is written back
WAL_CHECKPOINT_INTERVAL_S = 1.0  # seconds after which it is written back besides, so that no commit has to


class StoreError(LimpetError):
    """The store could not be read or written; what was not answered with success is not in it."""


class Store:
    """A database that one server has to itself.

    place: the name of an SQLite file, or a URL: sqlite:///file, postgresql://user@host/database.
    """

    def __init__(self, location: str | Path) -> None:
        self.url = _parse_url(str(location))
        self.display_name = (
            self.url.render_as_string(hide_password=True) if self.is_postgresql else str(self.url.database)
        )
        self._lock: IO[bytes] | Connection | None = None
        self.engine, self.write_engine = (
            _make_engine(self.url),
            _make_engine(self.url),
        )  # readers cannot keep the writer waiting
        self._server_id, self._closed = uuid4().hex, threading.Event()
        try:
            self._acquire_lock()
            self._check_tables()
            METADATA.create_all(self.engine)
            self._check_format()
            with self.write_engine.begin() as connection:
                set_meta(connection, "server", self._server_id)
            if not self.is_postgresql:
                threading.Thread(target=self._checkpoint_wal, name="limpet write-back", daemon=True).start()
        except SQLAlchemyError as error:
            self.close()
            raise InvalidInputError(f"{self.display_name} cannot be opened: {describe_db_error(error)}") from None
        except BaseException:
            self.close()
            raise

    def _checkpoint_wal(self) -> None:
        """SQLite's log goes into its file in the background: within a commit it would hold up all posts."""
        while not self._closed.wait(WAL_CHECKPOINT_INTERVAL_S):
            with suppress(SQLAlchemyError), self.engine.connect() as connection:
                connection.exec_driver_sql("pragma wal_checkpoint(passive)")

    @property
    def is_postgresql(self) -> bool:
        """Whether it is a server's, and not a file."""
        return self.url.get_backend_name() != "sqlite"

    @contextmanager
    def read_connection(self) -> Iterator[Connection]:
        """A connection to read with; any thread may have one."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"the store cannot be read: {describe_db_error(error)}") from None

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """One transaction: what is done in it is kept whole or not at all. One thread writes."""
        try:
            with self.write_engine.begin() as connection:
                if self.is_postgresql:
                    self._check_ownership(connection)
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"the store cannot be written: {describe_db_error(error)}") from None

    def get_meta(self, name: str) -> Any:
        """Something that the store knows of itself; None if it does not."""
        with self.read_connection() as connection:
            value = connection.execute(select(META_TABLE.c.value).where(META_TABLE.c.name == name)).scalar()
        return None if value is None else json.loads(value)

    def close(self) -> None:
        """Lets go of it."""
        self._closed.set()
        if self._lock is not None:
            self._lock.close()
        self.engine.dispose()
        self.write_engine.dispose()

    def _acquire_lock(self) -> None:
        """No other server may have it."""
        if self.is_postgresql:
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._lock = connection
            acquired = connection.execute(text("select pg_try_advisory_lock(:n)"), {"n": ADVISORY_LOCK_ID}).scalar()
        else:
            path = f"{self.url.database}.lock"
            try:
                self._lock = open(path, "ab")  # noqa: SIM115
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InvalidInputError(f"{self.url.database} cannot be opened: {reason}") from None
            acquired = try_lock(self._lock.fileno())
        if not acquired:
            raise InvalidInputError(f"{self.display_name} is in use by another server")

    def _check_tables(self) -> None:
        """Tables of somebody else that are called like ours are left alone."""
        tables = set(inspect(self.engine).get_table_names())
        if META_TABLE.name not in tables and (foreign := sorted(tables & METADATA.tables.keys())):
            raise InvalidInputError(
                f"{self.display_name} has a table {foreign[0]} that is not of a limpet server: give another"
            )

    def _check_ownership(self, connection: Connection) -> None:
        """A lock goes with its connection; if another server has come since then, this one must not write."""
        name = connection.execute(select(META_TABLE.c.value).where(META_TABLE.c.name == "server")).scalar()
        if name != json.dumps(self._server_id):
            raise StoreError("another server has taken the store over")

    def _check_format(self) -> None:
        version = self.get_meta("format")
        if version is None:
            with self.write_engine.begin() as connection:
                bulk_insert(connection, META_TABLE, [("format", json.dumps(STORE_FORMAT))])
        elif version != STORE_FORMAT:
            raise InvalidInputError(
                f"{self.display_name} has format {version}, this limpet reads {STORE_FORMAT}: give another store"
            )


def set_meta(connection: Connection, name: str, value: Any) -> None:
    """The store knows this of itself from now on."""
    connection.execute(META_TABLE.delete().where(META_TABLE.c.name == name))
    connection.execute(META_TABLE.insert().values(name=name, value=json.dumps(value)))


def describe_db_error(error: Exception) -> str:
    """What went wrong, in one line without the statement."""
    cause = getattr(error, "orig", None) or error
    detail = cause.args[0] if cause.args else ""
    if isinstance(detail, dict):  # of PostgreSQL, field by field
        detail = detail.get("M", "")
    return re.sub(r"\s+", " ", str(detail) or type(cause).__name__).strip()


def _parse_url(location: str) -> URL:
    if "://" not in location:
        return URL.create("sqlite", database=location)
    try:
        url = make_url(location)
    except SQLAlchemyError:
        raise InvalidInputError("store: expected the name of a file, or postgresql://user@host/database") from None
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise InvalidInputError(f"store: expected a file or postgresql://…, got {backend}://…")
    if backend == "sqlite" and not url.database:
        raise InvalidInputError("store: sqlite:///FILE names a file; a store in memory would forget everything")
    if url.drivername in ("postgresql", "postgres"):  # others may be named: postgresql+psycopg://
        return url.set(drivername="postgresql+pg8000")
    return url


def _make_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        with optional_import("a store in PostgreSQL", "postgres"):
            return create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=8)
    engine = create_engine(url, pool_size=8, max_overflow=8, connect_args={"timeout": 30.0})

    @event.listens_for(engine, "connect")
    def configure_connection(connection: Any, _: Any) -> None:
        connection.execute("pragma journal_mode = wal")  # readers do not wait for the writer
        connection.execute("pragma synchronous = full")  # what is answered with success survives a power cut
        connection.execute("pragma cache_size = -65536")
        connection.execute(f"pragma wal_autocheckpoint = {MAX_WAL_PAGES}")

    return engine
