"""Prefetching is bounded and raises errors; probing loses no batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from limpet.streams.batch import Batch
from limpet.streams.runner import MAX_QUEUED_BATCHES, PrefetchingReader
from limpet.streams.sources.base import BaseSource, ProbedSource


def test_prefetching_is_bounded() -> None:
    produced, closed = [], threading.Event()

    def batches() -> Iterator[Batch]:
        try:
            for i in range(1000):
                produced.append(i)
                yield Batch([float(i)], position=i)
        finally:
            closed.set()

    ahead = PrefetchingReader(batches())
    for i in range(5):
        batch = ahead.take(5.0)
        assert batch is not None
        assert batch.position == i
        time.sleep(0.02)
        assert len(produced) <= i + 1 + MAX_QUEUED_BATCHES + 1
    ahead.stop()
    assert closed.wait(5.0)
    assert len(produced) <= 5 + 2 * (MAX_QUEUED_BATCHES + 1)


def test_end_and_errors_follow_the_batches() -> None:
    def batches(error: Exception | None) -> Iterator[Batch]:
        yield Batch([1.0])
        if error is not None:
            raise error

    for error in (None, OSError("gone")):
        ahead = PrefetchingReader(batches(error))
        assert ahead.take(5.0) is not None
        if error is None:
            assert ahead.take(5.0) is None
        else:
            with pytest.raises(OSError, match="gone"):
                ahead.take(5.0)
        assert ahead.ended
        ahead.stop()
    slow = PrefetchingReader(iter(lambda: time.sleep(0.05) or Batch([1.0]), None))  # type: ignore[func-returns-value]
    assert slow.take(0.0) is None
    assert not slow.ended
    slow.stop()


class MalformedThenPoints(BaseSource):
    """Malformed records, then two points."""

    def __init__(self, n: int) -> None:
        self.n = n

    def read(self, position: Any) -> Iterator[Batch]:
        for i in range(position or 0, self.n):
            batch = Batch([], position=i + 1, n_records=2)
            batch.malformed.add("rubbish", 1, f"{i}")
            yield batch
            yield Batch([], position=i + 1)
        yield Batch([1.0], position=self.n + 1)
        yield Batch([2.0], position=self.n + 2)


def test_probing_loses_no_batch_and_buffers_little() -> None:
    probed = ProbedSource(MalformedThenPoints(1000))
    assert probed.wait_for_schema(threading.Event())
    assert len(probed._buffered) == 2
    batches = list(probed.read())
    assert [batch.n_records for batch in batches] == [2000, 1, 1]
    assert batches[0].malformed.total == 1000
    assert [reject.index for reject in batches[0].malformed.first] == [1, 3, 5, 7, 9]
    assert [batch.position for batch in batches] == [1000, 1001, 1002]
    stop = threading.Event()
    stop.set()
    assert next(probed.read(500)).position == 501
    assert not ProbedSource(MalformedThenPoints(10**9)).wait_for_schema(stop)
