"""What messages carry as batches, with positions that hold what the columns are."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.formats.json import SCHEMA_SAMPLE_RECORDS, SUBJECT_COLUMNS, JsonReader
from limpet.streams.schema import ColumnSpec, schema_from_position

log = logging.getLogger("limpet.streams")
POLL_TIMEOUT_S = 0.5  # seconds after which an empty batch is given
SCHEMA_WAIT_S = 1.0  # seconds that the first messages are kept back for, unless there are enough of them
ANY_COLUMNS = ColumnSpec()  # nothing is said about the columns
MAX_BATCH_MESSAGES, MAX_BATCH_BYTES = 1000, 4 << 20  # what one batch takes at most


class MessageDecoder:
    """Makes batches of messages.

    What the columns are is decided by the first messages, and one alone tells little: the first are kept back until
    there are enough, or for a second.
    """

    def __init__(self, spec: ColumnSpec, position: Any, start_position: dict[str, Any]) -> None:
        """place: where the source begins, if nothing more is known than `position`."""
        columns = schema_from_position(position)
        self._reader = JsonReader(spec, columns)
        self._position = start_position
        self._buffered: list[tuple[bytes, str]] = []
        self._first_arrival = 0.0
        self.by_subject = (spec.key if columns is None else columns.key) in SUBJECT_COLUMNS

    def make_batch(
        self, messages: Sequence[tuple[bytes, str]], position: dict[str, Any], lag: int | None, *, last: bool = False
    ) -> Batch:
        """The points of some messages, each of which has a payload and a subject, after which the source is at `place`.

        last: nothing more will come.
        """
        if self._reader.columns is None:
            if not self._buffered:
                self._first_arrival = time.monotonic()
            self._buffered.extend(messages)
            messages = self._buffered
            if (
                len(messages) < SCHEMA_SAMPLE_RECORDS
                and time.monotonic() - self._first_arrival < SCHEMA_WAIT_S
                and not last
            ):
                return Batch(np.zeros((0, 1)), self._position, lag=lag)
            self._buffered = []
        self._position = position
        if not messages:
            return Batch(np.zeros((0, 1)), self._add_columns(position), lag=lag)
        subjects = [subject for _, subject in messages] if self.by_subject else None
        batch = self._reader.make_batch([payload for payload, _ in messages], None, subjects)
        batch.position, batch.lag = self._add_columns(position), lag
        return batch

    def _add_columns(self, position: dict[str, Any]) -> dict[str, Any]:
        columns = self._reader.columns
        return position if columns is None else position | {"columns": columns.to_dict()}
