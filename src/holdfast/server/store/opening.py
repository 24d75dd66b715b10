"""Opens the store: an SQLite file by default, a PostgreSQL database by its URL."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnection

from holdfast.errors import BadInputError, HoldfastError
from holdfast.extras import needed_for
from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import ABOUT, METADATA
from holdfast.streams.owners import locked

FORMAT = 1
OURS = 7_235_418_120_554_511  # the number of our lock among those of a PostgreSQL database


LONGEST_LOG = 16_384  # pages of SQLite's log, after which a commit has to wait until it is written back
WRITE_BACK = 1.0  # seconds after which it is written back besides, so that no commit has to


class StoreError(HoldfastError):
    """The store could not be read or written; what was not answered with success is not in it."""


class Store:
    """A database that one server has to itself.

    place: the name of an SQLite file, or a URL: sqlite:///file, postgresql://user@host/database.
    """

    def __init__(self, place: str | Path) -> None:
        self.url = _url_of(str(place))
        self.shown = self.url.render_as_string(hide_password=True) if self.is_shared else str(self.url.database)
        self._lock: IO[bytes] | Connection | None = None
        self.engine, self.writer = _engine_of(self.url), _engine_of(self.url)  # readers cannot keep the writer waiting
        self._name, self._closed = uuid4().hex, threading.Event()
        try:
            self._take()
            self._require_ours()
            METADATA.create_all(self.engine)
            self._check_format()
            with self.writer.begin() as connection:
                set_about(connection, "server", self._name)
            if not self.is_shared:
                threading.Thread(target=self._write_back, name="holdfast write-back", daemon=True).start()
        except SQLAlchemyError as error:
            self.close()
            raise BadInputError(f"{self.shown} cannot be opened: {in_words(error)}") from None
        except BaseException:
            self.close()
            raise

    def _write_back(self) -> None:
        """SQLite's log goes into its file in the background: within a commit it would hold up all posts."""
        while not self._closed.wait(WRITE_BACK):
            with suppress(SQLAlchemyError), self.engine.connect() as connection:
                connection.exec_driver_sql("pragma wal_checkpoint(passive)")

    @property
    def is_shared(self) -> bool:
        """Whether it is a server's, and not a file."""
        return self.url.get_backend_name() != "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with; any thread may have one."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"the store cannot be read: {in_words(error)}") from None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: what is done in it is kept whole or not at all. One thread writes."""
        try:
            with self.writer.begin() as connection:
                if self.is_shared:
                    self._require_still_ours(connection)
                yield connection
        except (DBAPIError, NoConnection) as error:
            raise StoreError(f"the store cannot be written: {in_words(error)}") from None

    def about(self, name: str) -> Any:
        """Something that the store knows of itself; None if it does not."""
        with self.reading() as connection:
            found = connection.execute(select(ABOUT.c.value).where(ABOUT.c.name == name)).scalar()
        return None if found is None else json.loads(found)

    def close(self) -> None:
        """Lets go of it."""
        self._closed.set()
        if self._lock is not None:
            self._lock.close()
        self.engine.dispose()
        self.writer.dispose()

    def _take(self) -> None:
        """No other server may have it."""
        if self.is_shared:
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._lock = connection
            taken = connection.execute(text("select pg_try_advisory_lock(:n)"), {"n": OURS}).scalar()
        else:
            path = f"{self.url.database}.lock"
            try:
                self._lock = open(path, "ab")  # noqa: SIM115
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                raise BadInputError(f"{self.url.database} cannot be opened: {why}") from None
            taken = locked(self._lock.fileno())
        if not taken:
            raise BadInputError(f"{self.shown} is in use by another server")

    def _require_ours(self) -> None:
        """Tables of somebody else that are called like ours are left alone."""
        there = set(inspect(self.engine).get_table_names())
        if ABOUT.name not in there and (found := sorted(there & METADATA.tables.keys())):
            raise BadInputError(f"{self.shown} has a table {found[0]} that is not of a holdfast server: give another")

    def _require_still_ours(self, connection: Connection) -> None:
        """A lock goes with its connection; if another server has come since then, this one must not write."""
        name = connection.execute(select(ABOUT.c.value).where(ABOUT.c.name == "server")).scalar()
        if name != json.dumps(self._name):
            raise StoreError("another server has taken the store over")

    def _check_format(self) -> None:
        found = self.about("format")
        if found is None:
            with self.writer.begin() as connection:
                insert_many(connection, ABOUT, [("format", json.dumps(FORMAT))])
        elif found != FORMAT:
            raise BadInputError(f"{self.shown} has format {found}, this holdfast reads {FORMAT}: give another store")


def set_about(connection: Connection, name: str, value: Any) -> None:
    """The store knows this of itself from now on."""
    connection.execute(ABOUT.delete().where(ABOUT.c.name == name))
    connection.execute(ABOUT.insert().values(name=name, value=json.dumps(value)))


def in_words(error: Exception) -> str:
    """What went wrong, in one line without the statement."""
    cause = getattr(error, "orig", None) or error
    told = cause.args[0] if cause.args else ""
    if isinstance(told, dict):  # of PostgreSQL, field by field
        told = told.get("M", "")
    return re.sub(r"\s+", " ", str(told) or type(cause).__name__).strip()


def _url_of(place: str) -> URL:
    if "://" not in place:
        return URL.create("sqlite", database=place)
    try:
        url = make_url(place)
    except SQLAlchemyError:
        raise BadInputError("store: expected the name of a file, or postgresql://user@host/database") from None
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise BadInputError(f"store: expected a file or postgresql://…, got {backend}://…")
    if backend == "sqlite" and not url.database:
        raise BadInputError("store: sqlite:///FILE names a file; a store in memory would forget everything")
    if url.drivername in ("postgresql", "postgres"):  # others may be named: postgresql+psycopg://
        return url.set(drivername="postgresql+pg8000")
    return url


def _engine_of(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        with needed_for("a store in PostgreSQL", "postgres"):
            return create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=8)
    engine = create_engine(url, pool_size=8, max_overflow=8, connect_args={"timeout": 30.0})

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: Any) -> None:
        connection.execute("pragma journal_mode = wal")  # readers do not wait for the writer
        connection.execute("pragma synchronous = full")  # what is answered with success survives a power cut
        connection.execute("pragma cache_size = -65536")
        connection.execute(f"pragma wal_autocheckpoint = {LONGEST_LOG}")

    return engine
