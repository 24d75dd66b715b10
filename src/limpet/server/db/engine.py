"""Open the database: an SQLite file, or a PostgreSQL database by its URL."""

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
from limpet.streams.sinks.files import try_lock

STORE_FORMAT = 2
ADVISORY_LOCK_ID = 7_235_418_120_554_511  # of limpet in a PostgreSQL database
MAX_WAL_PAGES = 16_384  # of SQLite's log, beyond which a commit waits until the log is written back
WAL_CHECKPOINT_INTERVAL_S = 1.0  # between write-backs in the background


class StoreError(LimpetError):
    """The database cannot be read or written; the transaction is rolled back."""


def bulk_insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, each with a value for every column in order.

    SQLAlchemy's executemany takes three times as long with SQLite and a hundred times with PostgreSQL.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"insert into {table.name} values ({', '.join('?' * len(rows[0]))})", list(rows))
        return
    names = [str(column.name) for column in table.columns]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if any(isinstance(value, bytes | memoryview) for value in rows[0]):  # JSON cannot hold bytes
        connection.execute(table.insert(), records)
    else:
        connection.execute(text(_insert_from_json(table)), {"rows": orjson.dumps(records).decode()})


@cache
def _insert_from_json(table: Table) -> str:
    from sqlalchemy.dialects import postgresql

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    columns = ", ".join(f'"{column.name}" {column.type.compile(dialect)}' for column in table.columns)
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    records = f"json_to_recordset(cast(:rows as json)) as t({columns})"
    return f"insert into {table.name} ({names}) select {names} from {records}"


class Store:
    """Database owned by one server: file, sqlite:///file or postgresql://host/name."""

    def __init__(self, location: str | Path) -> None:
        self.url = _parse_url(str(location))
        url_text = self.url.render_as_string(hide_password=True)
        self.display_name = url_text if self.is_postgresql else str(self.url.database)
        self._lock: IO[bytes] | Connection | None = None
        self.engine = _make_engine(self.url)
        self.write_engine = _make_engine(self.url)  # separate, so that readers cannot exhaust the writer's pool
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
            reason = describe_db_error(error)
            raise InvalidInputError(f"database: {self.display_name} cannot be opened: {reason}.") from None
        except BaseException:
            self.close()
            raise

    def _checkpoint_wal(self) -> None:
        """Checkpoint SQLite's log in the background; in a commit it delays requests."""
        while not self._closed.wait(WAL_CHECKPOINT_INTERVAL_S):
            with suppress(SQLAlchemyError), self.engine.connect() as connection:
                connection.exec_driver_sql("pragma wal_checkpoint(passive)")

    @property
    def is_postgresql(self) -> bool:
        """Whether the database is PostgreSQL."""
        return self.url.get_backend_name() != "sqlite"

    @contextmanager
    def read_connection(self) -> Iterator[Connection]:
        """Open a connection for reading, from any thread."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"cannot read the database: {describe_db_error(error)}.") from None

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a transaction, from the writer thread."""
        try:
            with self.write_engine.begin() as connection:
                if self.is_postgresql:
                    self._check_ownership(connection)
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"cannot write the database: {describe_db_error(error)}.") from None

    def get_meta(self, name: str) -> Any:
        """Return a value of the metadata, None if it does not exist."""
        with self.read_connection() as connection:
            value = connection.execute(select(META_TABLE.c.value).where(META_TABLE.c.name == name)).scalar()
        return None if value is None else json.loads(value)

    def close(self) -> None:
        """Release the lock and close all connections."""
        self._closed.set()
        if self._lock is not None:
            self._lock.close()
        self.engine.dispose()
        self.write_engine.dispose()

    def _acquire_lock(self) -> None:
        if self.is_postgresql:
            self._lock = connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            acquired = connection.execute(text("select pg_try_advisory_lock(:n)"), {"n": ADVISORY_LOCK_ID}).scalar()
        else:
            path = f"{self.url.database}.lock"
            try:
                self._lock = open(path, "ab")  # noqa: SIM115
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InvalidInputError(f"database: {self.url.database} cannot be opened: {reason}.") from None
            acquired = try_lock(self._lock.fileno())
        if not acquired:
            raise InvalidInputError(f"database: {self.display_name} is in use by another server.")

    def _check_tables(self) -> None:
        """Refuse a database with tables of these names that another program made."""
        tables = set(inspect(self.engine).get_table_names())
        if META_TABLE.name not in tables and (foreign := sorted(tables & METADATA.tables.keys())):
            raise InvalidInputError(
                f"database: {self.display_name} has a table {foreign[0]!r} but no metadata of this version of limpet. "
                "Name another database."
            )

    def _check_ownership(self, connection: Connection) -> None:
        """Raise if the lock was lost with its connection and another server holds it."""
        name = connection.execute(select(META_TABLE.c.value).where(META_TABLE.c.name == "server")).scalar()
        if name != json.dumps(self._server_id):
            raise StoreError("database: another server has taken it over.")

    def _check_format(self) -> None:
        version = self.get_meta("format")
        if version is None:
            with self.write_engine.begin() as connection:
                bulk_insert(connection, META_TABLE, [("format", json.dumps(STORE_FORMAT))])
        elif version != STORE_FORMAT:
            raise InvalidInputError(
                f"database: {self.display_name} has format {version}, this limpet reads format {STORE_FORMAT}. "
                "Name another database."
            )


def set_meta(connection: Connection, name: str, value: Any) -> None:
    """Set a value of the metadata."""
    connection.execute(META_TABLE.delete().where(META_TABLE.c.name == name))
    connection.execute(META_TABLE.insert().values(name=name, value=json.dumps(value)))


def describe_db_error(error: Exception) -> str:
    """Describe an error in one line, without the SQL statement."""
    cause = getattr(error, "orig", None) or error
    detail = cause.args[0] if cause.args else ""
    if isinstance(detail, dict):  # pg8000 gives fields
        detail = detail.get("M", "")
    return re.sub(r"\s+", " ", str(detail) or type(cause).__name__).strip()


def _parse_url(location: str) -> URL:
    if "://" not in location:
        return URL.create("sqlite", database=location)
    try:
        url = make_url(location)
    except SQLAlchemyError:
        raise InvalidInputError("database: must be a file, or postgresql://user@host/database.") from None
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise InvalidInputError(f"database: must be a file or postgresql://…, got {backend}.")
    if backend == "sqlite" and not url.database:
        raise InvalidInputError("database: must be sqlite:///FILE, got no file. A database in memory is lost at exit.")
    if url.drivername in ("postgresql", "postgres"):  # other drivers can be named: postgresql+psycopg://
        return url.set(drivername="postgresql+pg8000")
    return url


def _make_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        with optional_import("a PostgreSQL database", "postgres"):
            return create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=8)
    engine = create_engine(url, pool_size=8, max_overflow=8, connect_args={"timeout": 30.0})

    @event.listens_for(engine, "connect")
    def configure_connection(connection: Any, _: Any) -> None:
        connection.execute("pragma journal_mode = wal")  # readers do not wait for the writer
        connection.execute("pragma synchronous = full")  # a stored point survives a power failure
        connection.execute("pragma cache_size = -65536")
        connection.execute(f"pragma wal_autocheckpoint = {MAX_WAL_PAGES}")

    return engine
