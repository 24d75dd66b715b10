"""Read a source into the monitor; store its position and points atomically."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import select

from limpet.core.algorithm import are_valid
from limpet.server.db.schema import SOURCE_POSITIONS_TABLE
from limpet.server.ingest.processor import IngestRequest, StreamPoints, check_key
from limpet.server.monitor import Monitor
from limpet.server.responses import ApiError
from limpet.streams.batch import Batch, composite_keys
from limpet.streams.event_time import EventTime
from limpet.streams.monitor_plan import should_split
from limpet.streams.results import NO_VALUE, OUT_OF_RANGE, to_str_list
from limpet.streams.schema import Schema
from limpet.streams.sources.base import BaseSource, ProbedSource, split_batch
from limpet.streams.timestamps import format_times, to_comparable

log = logging.getLogger("limpet.server")
MAX_LOGGED_INVALID_POINTS = 5


class SourceReader:
    """Reads a source in a thread, from the position that is stored under a name.

    The default key is that of a source without keys. By default the columns of a record are one stream if they are few.
    """

    def __init__(self, monitor: Monitor, source: BaseSource, name: str, default_key: str, joint: bool | None) -> None:
        self.name, self.state, self.error = name, "running", ""
        self.n_records = self.n_malformed = self.n_invalid = 0
        self._monitor, self._source, self.default_key, self._joint = monitor, source, default_key, joint
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="limpet source", daemon=True)
        self._thread.start()

    def to_api(self) -> dict[str, Any]:
        """Return the state as the API has it."""
        names = ("name", "state", "error", "n_records", "n_malformed", "n_invalid")
        return {name: getattr(self, name) for name in names}

    def stop(self) -> None:
        """Stop after the current batch, and close the source."""
        self._stop.set()
        self._thread.join(5.0)
        self._source.close()

    def _run(self) -> None:
        try:
            self._read()
            self.state = "stopped" if self._stop.is_set() else "ended"
            log.info("%s %s after %d records", self.name, self.state, self.n_records)
        except Exception as error:  # of any library that reads the source
            self.state, self.error = "failed", str(error)
            log.error("reading %s failed: %s", self.name, error)

    def _read(self) -> None:
        with self._monitor.store.read_connection() as connection:
            saved = connection.execute(
                select(SOURCE_POSITIONS_TABLE.c.position).where(SOURCE_POSITIONS_TABLE.c.name == self.name)
            ).scalar()
        source, position = ProbedSource(self._source), None
        if saved is not None:
            position, schema = json.loads(saved).values()
            source.schema = None if schema is None else Schema.from_dict(schema)
        if source.schema is None:
            source.wait_for_schema(self._stop, position)
        is_split = source.schema is not None and should_split(len(source.schema.values), self._joint)
        for batch in source.read(position):
            self.n_malformed += batch.malformed.total
            if batch.n_records:
                self._process(split_batch(batch) if is_split else batch)
                source.commit(batch.position)
            if self._stop.is_set():
                return

    def _process(self, batch: Batch) -> None:
        """Submit the points of a batch; count and log the invalid ones."""
        parts, is_valid = [], are_valid(batch.values)
        is_gap = (batch.variable_names is not None) & np.isnan(batch.values).all(axis=1)  # of a split record
        if n_invalid := int(np.count_nonzero(~is_valid & ~is_gap)):
            self._log_invalid(n_invalid, f"{NO_VALUE}, {OUT_OF_RANGE}")
        for part in split_by_stream(batch if is_valid.all() else batch.filter(is_valid), self.default_key):
            try:
                check_key(part.key)
            except ApiError as error:
                self._log_invalid(len(part), f"{part.key!r:.80}: {error}")
            else:
                parts.append(part)
        self.n_records += batch.n_records
        schema = None if batch.schema is None else batch.schema.to_dict()
        saved = {"position": batch.position, "schema": schema}
        for part, reason in self._submit(IngestRequest(parts, source_position=(self.name, saved))).failed_parts:
            self._log_invalid(len(part), f"{part.key!r:.80}: {reason}")

    def _submit(self, request: IngestRequest) -> IngestRequest:
        """Submit a request until it is stored; retry while the database is unavailable."""
        while True:
            try:
                self._monitor.writer.submit(request).result()
                return request
            except ApiError as error:
                if error.code not in ("overloaded", "store_unavailable") or self._stop.wait(1.0):
                    raise
                request = IngestRequest(request.parts, source_position=request.source_position)

    def _log_invalid(self, n: int, reason: str) -> None:
        self.n_invalid += n
        if self.n_invalid <= MAX_LOGGED_INVALID_POINTS:
            log.warning("%s: %d points not used: %s", self.name, n, reason)


def split_by_stream(batch: Batch, default_key: str) -> Iterator[StreamPoints]:
    """Yield the points of a batch by stream."""
    keys = composite_keys(batch)
    names = None if batch.variable_names is not None or batch.values.shape[1] == 1 else batch.names
    rows_by_key: dict[str, list[int]] = {}
    for row, key in enumerate([default_key] * len(batch) if keys is None else to_str_list(keys)):
        if key is not None:
            rows_by_key.setdefault(key, []).append(row)
    times, event_times = _to_event_times(batch)
    for key, rows in rows_by_key.items():
        values = batch.values if len(rows) == len(batch) else batch.values[rows]
        yield StreamPoints(key, values, names, [times[i] for i in rows], [event_times[i] for i in rows])


def _to_event_times(batch: Batch) -> tuple[list[str | None], list[EventTime | None]]:
    """Return times as strings and in comparable form, None if not comparable."""
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
    monitor: Monitor, source: BaseSource, name: str, default_key: str, joint: bool | None
) -> Iterator[SourceReader]:
    """Read a source while the context is open."""
    reader = SourceReader(monitor, source, name, default_key, joint)
    monitor.readers.append(reader)
    try:
        yield reader
    finally:
        reader.stop()
