"""Failing databases and clients that disconnect: what was not acknowledged is not stored."""

import contextlib
import sqlite3
import threading

import pytest
from sqlalchemy import event, select

from harness.postgres import new_database
from helpers.monitor import Monitor, expected, levels, sqlite_at, tables
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
def writes_fail(monitor, table):
    """As with a disk that is full."""
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
def test_a_group_that_cannot_be_written_leaves_nothing(start, table):
    monitor = start()
    monitor.post("a", levels()[:250])
    summaries, states, kept = monitor.summaries(), monitor.states(), tables(monitor.store)
    with writes_fail(monitor, table):
        with pytest.raises(ApiError, match=r"nothing was stored: .*disk full") as refused:
            monitor.writer.submit(
                IngestRequest(
                    [parse_stream_points("a", levels()[250:]), parse_stream_points("new", [1.0])], "name", "digest"
                )
            ).result(30)
        assert refused.value.status == 503
        assert (monitor.summaries(), monitor.states(), tables(monitor.store)) == (summaries, states, kept)
    assert monitor.post("a", levels()[250:])["first_row"] == 250
    monitor.post("new", [1.0])
    assert monitor.states()["a"] == expected(levels())[0]
    monitor.crash()
    assert start().states()["a"] == expected(levels())[0]


def test_a_disk_that_is_full(tmp_path):
    """For real: the file may not grow any further. Reading continues, and writing once the disk has space."""
    monitor = Monitor(sqlite_at(tmp_path))
    try:
        monitor.post("a", levels())
        monitor.checkpoint()

        def pages(most):
            monitor.store.write_engine.dispose()

            @event.listens_for(monitor.store.write_engine, "connect")
            def set_up(connection, _):
                connection.execute(f"pragma max_page_count = {most}")

        pages(1)  # which is as many as there are
        states, summaries = monitor.states(), monitor.summaries()
        refused = ""
        for _ in range(50):
            try:
                monitor.post("a", levels()[:200])
            except ApiError as refusal:
                refused = str(refusal)
                break
            states, summaries = monitor.states(), monitor.summaries()
        assert "full" in refused
        assert monitor.summaries() == summaries
        assert monitor.states() == states
        pages(1_000_000)
        monitor.post("a", [1.0, 2.0])
        assert monitor.summaries()["streams"][0]["n_points"] == summaries["streams"][0]["n_points"] + 2
    finally:
        monitor.stop()


def test_while_the_store_is_away_senders_are_reported_so(start, monkeypatch):
    monitor = start()
    monitor.post("a", levels()[:100])
    summaries, connect = monitor.summaries(), monitor.store.engine.connect

    def gone(*_):
        raise sqlite3.OperationalError("gone")

    monkeypatch.setattr(monitor.store.engine, "connect", gone)
    monkeypatch.setattr(monitor.store.write_engine, "begin", gone)
    for _ in range(2):
        with pytest.raises(ApiError, match="nothing was stored"):
            monitor.post("a", levels()[100:])
    with pytest.raises(ApiError, match="cannot be read"):
        monitor.call(lambda: None)
    monkeypatch.undo()
    assert connect is not None
    assert monitor.post("a", levels()[100:])["first_row"] == 100
    assert monitor.states()["a"] == expected(levels())[0]
    assert summaries["streams"][0]["n_points"] == 100


def test_a_cancelled_request_does_not_disturb_others(start):
    monitor, entered, release = start(), threading.Event(), threading.Event()

    def wait():
        entered.set()
        release.wait(10)

    waiting = monitor.writer.call(wait)
    entered.wait(10)
    gone, stays = monitor.submit("a", [1.0]), monitor.submit("b", [1.0])
    assert gone.cancel()
    release.set()
    waiting.result(10)
    assert stays.result(10)[0]["accepted"] == 1
    assert [stream["key"] for stream in monitor.summaries()["streams"]] == ["b"]


def test_the_same_post_twice_at_once_is_learned_once(start):
    monitor, release = start(), threading.Event()
    monitor.writer.call(lambda: release.wait(10))
    first, same, other = (
        monitor.submit("a", [1.0, 2.0], idempotency_key="n", digest="d"),
        monitor.submit("a", [1.0, 2.0], idempotency_key="n", digest="d"),
        monitor.submit("a", [3.0], idempotency_key="n", digest="e"),
    )
    beside = monitor.submit("b", [1.0])
    release.set()
    assert first.result(10) == same.result(10)
    assert beside.result(10)[0]["accepted"] == 1
    with pytest.raises(ApiError, match=r"^Idempotency-Key"):
        other.result(10)
    assert monitor.processor.registry.by_key.get("a").n_points == 2


def test_a_store_that_another_server_has_taken_over_is_left_alone(postgres):
    """The lock of a PostgreSQL store goes with its connection; the server that came later is the one that writes."""
    monitor = Monitor(new_database(postgres))
    try:
        monitor.post("a", [1.0])
        with monitor.store.write_engine.begin() as connection:
            set_meta(connection, "server", "another")
        with pytest.raises(ApiError, match="taken over"):
            monitor.post("a", [2.0])
        assert monitor.summaries()["n_points"] == 1
    finally:
        monitor.crash()


def test_of_a_source_what_fits_is_learned_with_its_position(start):
    """The rest is left out; after a crash nothing of it comes twice."""
    monitor = start()
    monitor.post("a", [1.0])
    parts = [parse_stream_points("a", [[1.0, 2.0]]), parse_stream_points("b", [3.0, 4.0])]
    post = IngestRequest(parts, source_position=("file", {"offset": 7}))
    (result,) = monitor.writer.submit(post).result()
    assert (result["stream"], result["accepted"]) == ("b", 2)
    assert [(part.key, refusal.code) for part, refusal in post.failed_parts] == [("a", "dimension_mismatch")]
    with monitor.store.read_connection() as connection:
        assert list(connection.execute(select(SOURCE_POSITIONS_TABLE))) == [("file", '{"offset": 7}')]
