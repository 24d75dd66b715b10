"""Results as messages, and how many of them a broker has not confirmed yet."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, HoldfastError
from holdfast.streams.results import Results

WHATS = ("alarms", "points")


def require_what(what: str) -> str:
    """What is told: alarms or points."""
    if what not in WHATS:
        raise BadInputError(f"a broker is told {' or '.join(WHATS)}, got {what!r}")
    return what


def messages_of(results: Results, what: str) -> Iterator[tuple[int, str, bytes, str | None]]:
    """The number in the run, the id, the JSON and the key of each message; missing and infinite numbers are null."""
    if what == "alarms":
        first, rows = results.first_alarm, iter(results.alarm_rows())
    else:
        columns = {name: _plain_column(column) for name, column in results.point_columns().items()}
        first = results.first_point
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    for n, row in enumerate(rows, first):
        name = f"{results.run}-{what}-{n}"
        key = row.get("key")
        told = json.dumps({"id": name} | {at: _plain(value) for at, value in row.items()}, ensure_ascii=False)
        yield n, name, told.encode("utf-8", "replace"), None if key is None else str(key)


def _plain_column(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _plain(value: Any) -> Any:
    """As JSON has it, which knows neither NaN nor numbers of numpy."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Unconfirmed:
    """How many messages are on their way, counted by the one who sends and the one who hears of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._some = threading.Condition()
        self._count = 0
        self.failure: Exception | None = None

    def add(self, n: int) -> None:
        """So many more, or fewer."""
        with self._some:
            self._count += n
            if n < 0:
                self._some.notify_all()

    def fail(self, failure: Exception) -> None:
        """Nothing more will be confirmed."""
        with self._some:
            self.failure = failure
            self._some.notify_all()

    def wait(self, most: int, patience: float) -> None:
        """Until there are no more than this many; patience: seconds to wait for, of which the caller is not sure."""
        begun = time.monotonic()
        with self._some:
            while self._count > most and self.failure is None:
                if time.monotonic() - begun > patience:
                    raise HoldfastError(f"{self._name} has not confirmed {self._count} messages within {patience:g} s")
                self._some.wait(0.1)
            if self.failure is not None:
                raise self.failure
