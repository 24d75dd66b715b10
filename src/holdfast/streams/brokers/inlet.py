"""What messages carry as batches, with positions that hold what the columns are."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.streams.batch import Batch
from holdfast.streams.columns import Wanted, columns_at
from holdfast.streams.records import ENOUGH, SUBJECTS, RecordReader

log = logging.getLogger("holdfast.streams")
TICK = 0.5  # seconds after which an empty batch is given
LOOK = 1.0  # seconds that the first messages are kept back for, unless there are enough of them
ANY = Wanted()  # nothing is said about the columns
MESSAGES, BYTES = 1000, 4 << 20  # what one batch takes at most


class Inlet:
    """Makes batches of messages.

    What the columns are is decided by the first messages, and one alone tells little: the first are kept back until
    there are enough, or for a second.
    """

    def __init__(self, wanted: Wanted, position: Any, place: dict[str, Any]) -> None:
        """place: where the source begins, if nothing more is known than `position`."""
        columns = columns_at(position)
        self._reader = RecordReader(wanted, columns)
        self._place = place
        self._kept: list[tuple[bytes, str]] = []
        self._since = 0.0
        self.by_subject = (wanted.key if columns is None else columns.key) in SUBJECTS

    def batch(
        self, messages: Sequence[tuple[bytes, str]], place: dict[str, Any], behind: int | None, *, last: bool = False
    ) -> Batch:
        """The points of some messages, each of which has a payload and a subject, after which the source is at `place`.

        last: nothing more will come.
        """
        if self._reader.columns is None:
            if not self._kept:
                self._since = time.monotonic()
            self._kept.extend(messages)
            messages = self._kept
            if len(messages) < ENOUGH and time.monotonic() - self._since < LOOK and not last:
                return Batch(np.zeros((0, 1)), self._place, behind=behind)
            self._kept = []
        self._place = place
        if not messages:
            return Batch(np.zeros((0, 1)), self._told(place), behind=behind)
        subjects = [subject for _, subject in messages] if self.by_subject else None
        batch = self._reader.batch([payload for payload, _ in messages], None, subjects)
        batch.position, batch.behind = self._told(place), behind
        return batch

    def _told(self, place: dict[str, Any]) -> dict[str, Any]:
        columns = self._reader.columns
        return place if columns is None else place | {"columns": columns.as_json()}
