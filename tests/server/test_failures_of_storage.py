"""Failing databases and clients that disconnect: what was not acknowledged is not stored."""

import contextlib
import sqlite3
import threading

import pytest
from sqlalchemy import event, select

from harness.postgres import new_database
from helpers.monitor import Monitor, get_expected, make_levels, make_sqlite_path, read_tables
from limpet.server.db.engine import set_meta
from limpet.server.db.schema import SOURCE_POSITIONS_TABLE
from limpet.server.ingest.processor import IngestRequest
from limpet.server.responses import ApiError
from limpet.server.routes.points import parse_stream_points

TRIGGERS = {
    "sqlite": [
        "create trigger full before insert on {} begin select raise(abort, 'disk full'); end",
        "drop trigger full",
    ],
    "postgresql": [
        "create function no() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$",
        "create trigger full before insert on {} for each row execute function no()",
        "drop function no cascade",
    ],
}


@contextlib.contextmanager
def fail_writes(monitor, table):
    """Let writes to a table fail, as on a full disk."""
    *before, after = TRIGGERS[monitor.store.engine.dialect.name]
    before, after = ([line.replace("full before", '"full" before').format(table) for line in before], after)
    with monitor.store.write_transaction() as connection:
        for line in before:
            connection.exec_driver_sql(line)
    try:
        yield
    finally:
        with monitor.store.write_transaction() as connection:
            connection.exec_driver_sql(after.replace("trigger full", 'trigger "full"'))


@pytest.mark.parametrize("table", ["points", "alarms", "streams", "idempotency"])
def test_failed_group_stores_nothing(start, table):
    monitor = start()
    monitor.post("a", make_levels()[:250])
    summaries, states, stored = monitor.summaries(), monitor.states(), read_tables(monitor.store)
    with fail_writes(monitor, table):
        with pytest.raises(ApiError, match=r"nothing was stored: .*disk full") as error:
            monitor.writer.submit(
                IngestRequest(
                    [parse_stream_points("a", make_levels()[250:]), parse_stream_points("new", [1.0])], "name", "digest"
                )
            ).result(30)
        assert error.value.status == 503
        assert (monitor.summaries(), monitor.states(), read_tables(monitor.store)) == (summaries, states, stored)
    assert monitor.post("a", make_levels()[250:])["first_row"] == 250
    monitor.post("new", [1.0])
    assert monitor.states()["a"] == get_expected(make_levels())[0]
    monitor.crash()
    assert start().states()["a"] == get_expected(make_levels())[0]


def test_full_disk(tmp_path):
    """The database file must not grow. Reads continue, and writes once the disk has space."""
    monitor = Monitor(make_sqlite_path(tmp_path))
    try:
        monitor.post("a", make_levels())
        monitor.checkpoint()

        def limit_pages(max_pages):
            monitor.store.write_engine.dispose()

            @event.listens_for(monitor.store.write_engine, "connect")
            def set_up(connection, _):
                connection.execute(f"pragma max_page_count = {max_pages}")

        limit_pages(1)  # no more than the file has
        states, summaries = monitor.states(), monitor.summaries()
        message = ""
        for _ in range(50):
            try:
                monitor.post("a", make_levels()[:200])
            except ApiError as error:
                message = str(error)
                break
            states, summaries = monitor.states(), monitor.summaries()
        assert "full" in message
        assert monitor.summaries() == summaries
        assert monitor.states() == states
        limit_pages(1_000_000)
        monitor.post("a", [1.0, 2.0])
        assert monitor.summaries()["streams"][0]["n_points"] == summaries["streams"][0]["n_points"] + 2
    finally:
        monitor.stop()


def test_requests_are_errors_while_the_database_is_unavailable(start, monkeypatch):
    monitor = start()
    monitor.post("a", make_levels()[:100])
    summaries, connect = monitor.summaries(), monitor.store.engine.connect

    def fail_to_connect(*_):
        raise sqlite3.OperationalError("gone")

    monkeypatch.setattr(monitor.store.engine, "connect", fail_to_connect)
    monkeypatch.setattr(monitor.store.write_engine, "begin", fail_to_connect)
    for _ in range(2):
        with pytest.raises(ApiError, match="nothing was stored"):
            monitor.post("a", make_levels()[100:])
    with pytest.raises(ApiError, match="cannot be read"):
        monitor.call(lambda: None)
    monkeypatch.undo()
    assert connect is not None
    assert monitor.post("a", make_levels()[100:])["first_row"] == 100
    assert monitor.states()["a"] == get_expected(make_levels())[0]
    assert summaries["streams"][0]["n_points"] == 100


def test_cancelled_request_does_not_affect_others(start):
    monitor, entered, release = start(), threading.Event(), threading.Event()

    def wait():
        entered.set()
        release.wait(10)

    waiting = monitor.writer.call(wait)
    entered.wait(10)
    cancelled, other = monitor.submit("a", [1.0]), monitor.submit("b", [1.0])
    assert cancelled.cancel()
    release.set()
    waiting.result(10)
    assert other.result(10)[0]["accepted"] == 1
    assert [stream["key"] for stream in monitor.summaries()["streams"]] == ["b"]


def test_concurrent_duplicate_requests_are_learned_once(start):
    monitor, release = start(), threading.Event()
    monitor.writer.call(lambda: release.wait(10))
    first, same, other = (
        monitor.submit("a", [1.0, 2.0], idempotency_key="n", digest="d"),
        monitor.submit("a", [1.0, 2.0], idempotency_key="n", digest="d"),
        monitor.submit("a", [3.0], idempotency_key="n", digest="e"),
    )
    unrelated = monitor.submit("b", [1.0])
    release.set()
    assert first.result(10) == same.result(10)
    assert unrelated.result(10)[0]["accepted"] == 1
    with pytest.raises(ApiError, match=r"^Idempotency-Key"):
        other.result(10)
    assert monitor.processor.registry.by_key.get("a").n_points == 2


def test_database_taken_over_by_another_server_is_not_written(postgres):
    """The lock of a PostgreSQL database ends with its connection; only the newer server may write."""
    monitor = Monitor(new_database(postgres))
    try:
        monitor.post("a", [1.0])
        with monitor.store.write_engine.begin() as connection:
            set_meta(connection, "server", "another")
        with pytest.raises(ApiError, match="taken it over"):
            monitor.post("a", [2.0])
        assert monitor.summaries()["n_points"] == 1
    finally:
        monitor.crash()


def test_valid_parts_of_a_source_are_learned_with_its_position(start):
    """Other parts are dropped; the position prevents duplicates after a crash."""
    monitor = start()
    monitor.post("a", [1.0])
    parts = [parse_stream_points("a", [[1.0, 2.0]]), parse_stream_points("b", [3.0, 4.0])]
    post = IngestRequest(parts, source_position=("file", {"offset": 7}))
    (result,) = monitor.writer.submit(post).result()
    assert (result["stream"], result["accepted"]) == ("b", 2)
    assert [(part.key, error.code) for part, error in post.failed_parts] == [("a", "dimension_mismatch")]
    with monitor.store.read_connection() as connection:
        assert list(connection.execute(select(SOURCE_POSITIONS_TABLE))) == [("file", '{"offset": 7}')]
