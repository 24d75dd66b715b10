"""Batches from the payloads of messages."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.formats.json import SCHEMA_SAMPLE_RECORDS, SUBJECT_COLUMNS, JsonReader
from limpet.streams.schema import ColumnSpec, Schema

log = logging.getLogger("limpet.streams")
POLL_TIMEOUT_S = 0.5  # between empty batches
SCHEMA_WAIT_S = 1.0  # that the first messages are buffered for, unless there are enough of them
ANY_COLUMNS = ColumnSpec()
MAX_BATCH_MESSAGES, MAX_BATCH_BYTES = 1000, 4 << 20


class MessageDecoder:
    """Make batches of messages.

    The columns are inferred from the first messages. One is not enough for that: the first messages are buffered until
    there are enough, or for a second.

    Parameters
    ----------
    spec : ColumnSpec
        Columns requested by the user.
    schema : Schema or None
        The columns, if they are known.
    start_position : dict
        Position of the source before the first message.
    """

    def __init__(self, spec: ColumnSpec, schema: Schema | None, start_position: dict[str, Any]) -> None:
        self._reader = JsonReader(spec, schema)
        self._position = start_position
        self._buffered: list[tuple[bytes, str]] = []
        self._first_arrival = 0.0
        self.by_subject = (spec.key if schema is None else schema.key) in SUBJECT_COLUMNS

    def make_batch(
        self, messages: Sequence[tuple[bytes, str]], position: dict[str, Any], lag: int | None, *, last: bool = False
    ) -> Batch:
        """Decode messages, each a payload and a subject, after which the source is at `position`.

        `last` means that no message follows.
        """
        if self._reader.schema is None:
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
            return Batch(np.zeros((0, 1)), position, schema=self._reader.schema, lag=lag)
        subjects = [subject for _, subject in messages] if self.by_subject else None
        batch = self._reader.make_batch([payload for payload, _ in messages], position, subjects)
        batch.lag = lag
        return batch
