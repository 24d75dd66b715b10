"""The database of the server: equal in SQLite and PostgreSQL, through restarts and crashes."""

import contextlib
import sqlite3

import numpy as np
import pytest
from sqlalchemy import text

import limpet as lp
from helpers.monitor import Monitor, get_expected, make_levels, read_tables
from limpet.exceptions import InvalidInputError
from limpet.server.db import checkpoints
from limpet.server.db.points import read_points_after


def post_in_parts(monitor, key, values, sizes=(1, 7, 64, 130, 3)):
    """Post values a few at a time."""
    start, index = 0, 0
    while start < len(values):
        size = sizes[index % len(sizes)]
        monitor.post(key, values[start : start + size])
        start, index = start + size, index + 1


@pytest.mark.parametrize("how", ["stopped", "checkpoint and points", "points alone", "torn checkpoint"])
def test_a_restart_changes_nothing(start, how, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHECKPOINT_CHUNK_BYTES", 3000)  # so that a checkpoint has several chunks
    before = start()
    before.post("pump/1", make_levels()[:150])
    if how in ("checkpoint and points", "torn checkpoint"):
        before.checkpoint()
    post_in_parts(before, "pump/1", make_levels()[150:])
    before.post("pump/2", make_levels(300, 8, 200))
    before.post(
        "new", [{"value": 3, "time": "2026-01-01T00:00:00Z"}, {"value": 4, "time": 7 and "2026-01-01T00:01:00Z"}]
    )
    before.post("several", [{"values": {"a": 1.5, "b": None}}, {"values": {"b": 0.1 + 0.2}}])
    if how == "torn checkpoint":
        before.checkpoint(max_chunks=2)
    first = before.alarms()[0]["id"]  # the newest, so that an older one is the newest that is open
    acknowledged = before.acknowledge(first, "a <b>note</b>; drop table alarms")
    summaries, stored, states, raised = before.summaries(), read_tables(before.store), before.states(), before.alarms()
    assert len(raised) > 1
    assert summaries["open_alarms"] == len(raised) - 1
    before.stop() if how == "stopped" else before.crash()

    after = start()
    assert after.summaries() == summaries
    assert after.states() == states
    assert after.alarms() == raised
    assert acknowledged in raised
    excluded = ("checkpoints", "checkpoint_chunks", "meta")
    assert read_tables(after.store, excluded) == {name: rows for name, rows in stored.items() if name not in excluded}
    assert states["pump/1"] == get_expected(make_levels())[0]
    assert after.post("new", [{"value": 5, "time": "2026-01-01T00:00:30Z"}])["skipped"] == {"late": 1, "duplicate": 0}
    assert after.post("new", [{"value": 4, "time": "2026-01-01T00:01:00Z"}])["skipped"] == {"late": 0, "duplicate": 1}
    more = after.post("pump/1", [500.0])
    assert (more["first_row"], more["last_row"]) == (400, 400)
    assert min(alarm["id"] for alarm in more["alarms"]) > max(alarm["id"] for alarm in raised)


def test_crashed_server_resumes_like_an_uninterrupted_one(start):
    values, first = make_levels(), start()
    first.post("a", values[:100])
    first.checkpoint()
    first.post("a", values[100:170])
    first.crash()
    second = start()
    second.post("a", values[170:290])
    second.crash()
    third = start()
    third.checkpoint()
    third.post("a", values[290:])
    state, trace = get_expected(values)
    assert third.states() == {"a": state}
    with third.store.read_connection() as connection:
        points = read_points_after(connection, 1, -1, 1000, 1)
    assert points.rows.tolist() == list(range(400))
    np.testing.assert_array_equal(points.score, trace.score)
    np.testing.assert_array_equal(points.p_value, trace.p_value)
    assert [(item["kind"], item["row"]) for item in reversed(third.alarms())] == [
        (alarm.kind, alarm.row) for alarm in trace.alarms
    ]


def test_failed_checkpoint_is_abandoned(start, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHECKPOINT_CHUNK_BYTES", 1000)
    monitor = start()
    monitor.post("a", make_levels())
    monitor.call(lambda: setattr(monitor.writer, "_checkpoint_writer", monitor.processor.start_checkpoint()))
    bulk_insert = checkpoints.bulk_insert

    def fails_once(connection, table, rows):
        if rows[0][:2] == (0, 2):
            raise OSError("disk full")
        bulk_insert(connection, table, rows)

    monkeypatch.setattr(checkpoints, "bulk_insert", fails_once)
    for _ in range(3):
        with contextlib.suppress(OSError):
            monitor.call(lambda: monitor.writer._checkpoint_writer and monitor.writer._write_chunk())
    assert monitor.writer._checkpoint_writer is None
    monkeypatch.setattr(checkpoints, "bulk_insert", bulk_insert)
    assert read_tables(monitor.store)["checkpoints"] == []
    monitor.checkpoint()
    learned = monitor.states()
    monitor.crash()
    assert start().states() == learned


def test_stream_deleted_and_created_again_around_a_crash(start):
    before = start()
    before.post("a", make_levels())
    before.post("b", make_levels()[:30])
    newest = before.alarms()[0]["id"]
    before.checkpoint()
    before.call(lambda: before.processor.delete_stream("a"))
    assert before.alarms() == []
    before.crash()
    between = start()
    assert [stream["key"] for stream in between.summaries()["streams"]] == ["b"]
    between.post("a", [[1.0, 2.0], [3.0, 4.0]])  # even of another width
    between.checkpoint()
    between.call(lambda: between.processor.delete_stream("a"))
    between.post("a", make_levels()[:290])
    between.crash()
    after = start()
    assert after.states() == {"a": get_expected(make_levels()[:290])[0], "b": get_expected(make_levels()[:30])[0]}
    assert [item["row"] for item in after.alarms()][::-1] == [
        item.row for item in get_expected(make_levels()[:290])[1].alarms
    ]
    assert after.alarms()[-1]["id"] > newest


def test_second_server_on_one_database_raises(start, location):
    first = start()
    with pytest.raises(InvalidInputError, match="in use by another server"):
        Monitor(location)
    first.stop()
    start()


def test_other_parameters_and_formats_raise(start, location):
    start().stop()
    with pytest.raises(InvalidInputError, match=r"^far: .*got 0\.01"):
        Monitor(location, lp.Detector(far=0.01))
    monitor = start()
    with monitor.store.write_transaction() as connection:
        connection.execute(text("update meta set value = '99' where name = 'format'"))
    monitor.stop()
    with pytest.raises(InvalidInputError, match="format 99"):
        Monitor(location)


def test_other_files_raise_and_are_unchanged(tmp_path):
    other, notes = tmp_path / "alarms.db", tmp_path / "notes.txt"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("create table alarms (n integer)")
    with pytest.raises(InvalidInputError, match=r"^database: .*alarms\.db has a table 'alarms'"):
        Monitor(other)
    with contextlib.closing(sqlite3.connect(other)) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("alarms",)]
    notes.write_text("some notes\n" * 100)
    with pytest.raises(InvalidInputError, match=r"^database: .*notes\.txt cannot be opened"):
        Monitor(notes)
    for location, message in [
        (tmp_path / "no" / "folder.db", "cannot be opened: no such file"),
        ("mysql://localhost/x", "must be a file or postgresql"),
        ("sqlite://", "must be sqlite:///FILE"),
        ("://", "must be a file, or postgresql"),
        ("postgresql://no one:secret@127.0.0.1:1/x", "cannot be opened"),
    ]:
        with pytest.raises(InvalidInputError, match=message) as error:
            Monitor(location)
        assert "secret" not in str(error.value)
