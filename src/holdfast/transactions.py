"""Several changes of an SQLite database as one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_once(database: sqlite3.Connection) -> Iterator[None]:
    """What is done here is written whole or not at all."""
    database.execute("begin immediate")
    try:
        yield
        database.execute("commit")
    except BaseException:
        if database.in_transaction:
            database.execute("rollback")
        raise
