"""A source of `limpet watch` that feeds the monitor: its position is kept with the points, in one transaction."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import select

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.server.db.schema import SOURCE_POSITIONS_TABLE
from limpet.server.errors import ApiError
from limpet.server.ingest.event_time import EventTime
from limpet.server.ingest.parse import IngestRequest, StreamPoints, check_key
from limpet.server.monitor import Monitor
from limpet.streams.batch import Batch
from limpet.streams.results import to_str_list
from limpet.streams.schema_probe import ProbedSource
from limpet.streams.sources.base import Source
from limpet.streams.split_columns import MAX_JOINT_COLUMNS, composite_keys, split_batch
from limpet.streams.timestamps import format_times, to_comparable

log = logging.getLogger("limpet.server")
MAX_LOGGED = 5  # refusals that are logged


class SourceReader:
    """Reads a source in a thread of its own, from where it was when the server stopped.

    name: under which its position is kept. stream: the key where the source has none. joint: whether the columns of a
    record are one stream; None: if they are few.
    """

    def __init__(
        self, monitor: Monitor, source: Source, name: str, default_key: str, joint: bool | None = None
    ) -> None:
        self.name, self.state, self.problem = name, "running", ""
        self.n_records = self.n_refused = 0
        self._monitor, self._source, self.default_key, self._joint = monitor, source, default_key, joint
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="limpet feed", daemon=True)
        self._thread.start()

    def to_api(self) -> dict[str, Any]:
        """As the API tells it."""
        names = ("name", "state", "problem", "n_records", "n_refused")
        return {name: getattr(self, name) for name in names}

    def stop(self) -> None:
        """What has been read is learnt, and that is all."""
        self._stop.set()
        self._thread.join(5.0)
        getattr(self._source, "close", lambda: None)()

    def _run(self) -> None:
        try:
            self._read()
            self.state = "stopped" if self._stop.is_set() else "ended"
            log.info("%s %s after %d records", self.name, self.state, self.n_records)
        except Exception as error:  # of whatever library reads it
            self.state, self.problem = "failed", str(error)
            log.error("%s is not read any more: %s", self.name, error)

    def _read(self) -> None:
        with self._monitor.store.read_connection() as connection:
            position = connection.execute(
                select(SOURCE_POSITIONS_TABLE.c.position).where(SOURCE_POSITIONS_TABLE.c.name == self.name)
            ).scalar()
        source = ProbedSource(self._source, None if position is None else json.loads(position))
        if source.columns is None:
            source.wait_for_schema(self._stop)
        names = () if source.columns is None else source.columns.values
        is_split = len(names) > MAX_JOINT_COLUMNS if self._joint is None else not self._joint
        for batch in source.read():
            self._count_rejected(batch)
            if batch.n_records:
                self._process(split_batch(batch) if is_split and len(names) > 1 else batch)
                source.commit(batch.position)
            if self._stop.is_set():
                return

    def _process(self, batch: Batch) -> None:
        """The points of a batch; those that cannot be kept are left out and told of."""
        parts = []
        for part in split_by_stream(batch, self.default_key):
            try:
                check_key(part.key)
            except ApiError as refusal:
                self._log_rejected(len(part), f"{part.key!r:.80}: {refusal}")
            else:
                parts.append(part)
        self.n_records += batch.n_records
        for part, reason in self._submit(
            IngestRequest(parts, source_position=(self.name, batch.position))
        ).rejected_parts:
            self._log_rejected(len(part), f"{part.key!r:.80}: {reason}")

    def _submit(self, request: IngestRequest) -> IngestRequest:
        """Waits until it is kept, however long the store cannot be written."""
        while True:
            try:
                self._monitor.writer.submit(request).result()
                return request
            except ApiError as refusal:
                if refusal.code not in ("overloaded", "store_unavailable") or self._stop.wait(1.0):
                    raise
                request = IngestRequest(request.parts, source_position=request.source_position)

    def _count_rejected(self, batch: Batch) -> None:
        self.n_refused += batch.rejects.total

    def _log_rejected(self, n: int, reason: str) -> None:
        self.n_refused += n
        if self.n_refused <= MAX_LOGGED:
            log.warning("%s: %d points are left out: %s", self.name, n, reason)


def split_by_stream(batch: Batch, default_key: str) -> Iterator[StreamPoints]:
    """The points of a batch by their streams, those that can be learnt from."""
    is_in_range = (np.isnan(batch.values) | (np.abs(batch.values) <= MAX_ABS_VALUE)).all(axis=1)
    is_valid = np.asarray(is_in_range & ~np.isnan(batch.values).all(axis=1))
    batch = batch if is_valid.all() else batch.filter(is_valid)
    keys = composite_keys(batch)
    names = None if batch.variable_names is not None or batch.values.shape[1] == 1 else batch.names
    rows_by_key: dict[str, list[int]] = {}
    if keys is None:
        rows_by_key[default_key] = list(range(len(batch)))
    else:
        for row, key in enumerate(to_str_list(keys)):
            if key is not None:
                rows_by_key.setdefault(key, []).append(row)
    times, event_times = _to_event_times(batch)
    for key, rows in rows_by_key.items():
        if rows:
            values = batch.values if len(rows) == len(batch) else batch.values[rows]
            yield StreamPoints(key, values, names, [times[i] for i in rows], [event_times[i] for i in rows])


def _to_event_times(batch: Batch) -> tuple[list[str | None], list[EventTime | None]]:
    """Times as texts and to compare; none, where they cannot be compared."""
    event_times = None if batch.times is None else to_comparable(batch.times)
    if batch.times is None or event_times is None:
        return [None] * len(batch), [None] * len(batch)
    missing = np.isnat(batch.times) if batch.times.dtype.kind == "M" else np.isnan(batch.times)
    strings = [None if time is None else str(time) for time in format_times(batch.times, batch.tz_aware)]
    return strings, [
        None if is_missing else event_time
        for event_time, is_missing in zip(event_times.tolist(), missing.tolist(), strict=True)
    ]


@contextmanager
def run_reader(
    monitor: Monitor, source: Source, name: str, default_key: str, joint: bool | None
) -> Iterator[SourceReader]:
    """Feeds the monitor as long as it runs."""
    reader = SourceReader(monitor, source, name, default_key, joint)
    monitor.readers.append(reader)
    try:
        yield reader
    finally:
        reader.stop()
