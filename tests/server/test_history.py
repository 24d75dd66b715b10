"""Compaction of old points into larger buckets: bounded size, same summary."""

import numpy as np
import pytest

from helpers.monitor import get_expected, make_levels, read_tables
from limpet.server.db import history as history_module
from limpet.server.db import points
from limpet.server.db.history import BUCKET_FACTOR, N_BUCKET_LEVELS, read_history
from limpet.server.db.points import BLOCK_MAX_POINTS

RETAINED_POINTS = 16


def get_history(monitor, first=0, last=2**53):
    with monitor.store.read_connection() as connection:
        return read_history(connection, 1, 1, first, last)


def summarize(stored, begin, end):
    """Return what a chart shows of the rows from begin up to end."""
    part = slice(*np.searchsorted(stored.rows, [begin, end]))
    return (
        np.nanmin(stored.low[part]),
        np.nanmax(stored.high[part]),
        stored.counts[part].sum(),
        stored.n_rejected[part].sum(),
        np.bitwise_or.reduce(stored.outcomes[part]),
        np.fmax.reduce(stored.score[part]),
        np.fmin.reduce(stored.p_value[part]),
    )


def test_compaction_at_a_block_boundary(start):
    monitor = start(retain_points=RETAINED_POINTS)
    monitor.post("a", make_levels(BLOCK_MAX_POINTS + RETAINED_POINTS))
    monitor.checkpoint()
    monitor.compact()
    assert (
        get_history(monitor).counts.tolist()
        == [BUCKET_FACTOR] * (BLOCK_MAX_POINTS // BUCKET_FACTOR) + [1] * RETAINED_POINTS
    )


def test_compaction_preserves_the_summary(start):
    monitor = start(retain_points=RETAINED_POINTS)
    monitor.writer._compactor.retain_points = 10**6  # nothing yet
    monitor.post("a", make_levels(2000))
    whole, raised = get_history(monitor), monitor.alarms()
    monitor.writer._compactor.retain_points = RETAINED_POINTS
    monitor.compact()
    assert len(get_history(monitor)) == 2000, "what is in no checkpoint may have to be learned again"
    monitor.checkpoint()
    monitor.compact()
    stored = get_history(monitor)
    assert len(stored) <= (RETAINED_POINTS + max(RETAINED_POINTS // 4, BUCKET_FACTOR)) * (1 + N_BUCKET_LEVELS)
    np.testing.assert_array_equal(stored.rows[1:], (stored.rows + stored.counts)[:-1])
    assert stored.rows[0] == 0
    assert stored.counts.sum() == 2000
    assert set(stored.counts.tolist()) == {1, BUCKET_FACTOR, BUCKET_FACTOR**2}
    for begin, n in zip(stored.rows.tolist(), stored.counts.tolist(), strict=True):
        assert summarize(stored, begin, begin + n) == pytest.approx(summarize(whole, begin, begin + n), nan_ok=True)
    assert monitor.alarms() == raised
    part = get_history(monitor, 700, 720)
    assert part.rows[0] <= 700
    assert (part.rows + part.counts)[-1] > 720
    reduced = stored.reduce_to(10)
    assert len(reduced) <= 10
    assert reduced.counts.sum() == 2000
    state = monitor.states()
    monitor.crash()
    again = start(retain_points=RETAINED_POINTS)
    assert again.states() == state
    assert again.summaries()["streams"][0]["n_points"] == 2000
    np.testing.assert_array_equal(get_history(again).rows, stored.rows)


def test_database_size_is_bounded(start):
    monitor, sizes = start(retain_points=RETAINED_POINTS), []
    values = make_levels(3000)
    for _ in range(4):
        monitor.post("a", values)
        monitor.checkpoint()
        monitor.compact()
        sizes.append({name: len(rows) for name, rows in read_tables(monitor.store).items()})
    assert sizes[-1]["points"] <= RETAINED_POINTS + max(RETAINED_POINTS // 4, BUCKET_FACTOR)
    assert sizes[-1]["buckets"] <= N_BUCKET_LEVELS * (RETAINED_POINTS + max(RETAINED_POINTS // 4, BUCKET_FACTOR))
    assert sizes[-1]["checkpoint_chunks"] == sizes[0]["checkpoint_chunks"]
    assert sizes[-1]["checkpoints"] == 1
    stored = get_history(monitor)
    np.testing.assert_array_equal(stored.rows[1:], (stored.rows + stored.counts)[:-1])
    assert stored.rows[0] > 0
    assert stored.rows[-1] + stored.counts[-1] == 12_000
    assert monitor.states()["a"] == get_expected(values * 4)[0]


def test_old_acknowledged_alarms_are_deleted(start, monkeypatch):
    monkeypatch.setattr(history_module, "MAX_KEPT_ALARMS", 1)
    monitor = start(retain_points=RETAINED_POINTS)
    monitor.post("a", make_levels(1000))
    ids = [item["id"] for item in monitor.alarms()]
    assert len(ids) > 2
    monitor.checkpoint()
    monitor.compact()
    assert [item["id"] for item in monitor.alarms()] == ids, "open ones stay"
    monitor.acknowledge_all()
    monitor.post("a", make_levels(100))
    monitor.checkpoint()
    monitor.compact()
    assert [item["id"] for item in monitor.alarms() if item["acknowledged_at"]] in ([], ids[:1])


def test_history_compacted_during_a_read_is_complete(start, monkeypatch):
    monitor = start(retain_points=RETAINED_POINTS)
    monitor.post("a", make_levels(1000))
    monitor.checkpoint()
    read = points.read_points

    def read_and_compact(connection, *where):
        stored = read(connection, *where)
        monkeypatch.setattr(points, "read_points", read)
        monitor.compact()
        return stored

    monkeypatch.setattr(points, "read_points", read_and_compact)
    assert get_history(monitor).counts.sum() == 1000
    assert len(get_history(monitor)) < 1000
