"""The status of a run, in a file beside its checkpoints."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet.exceptions import InvalidInputError
from limpet.streams.checkpoint_store import is_in_use
from limpet.streams.results import RunStats

if TYPE_CHECKING:
    from limpet.streams.runner import Runner

log = logging.getLogger("limpet.streams")
STATUS_FILE_NAME = "status.json"
STATUS_INTERVAL_S = 1.0
RATE_WINDOW_S = 10.0


class StatusFile:
    """Writes the status of a run beside its checkpoints, once per second."""

    def __init__(self, folder: Path, source: str) -> None:
        self.path, self.source = folder / STATUS_FILE_NAME, source
        self._started_at, self._next_write = time.time(), 0.0
        self._points_at: deque[tuple[float, int]] = deque()  # in the last seconds
        self._has_warned = False
        self._write("waiting for the first record", RunStats(), None, None)

    def tick(self, runner: Runner, last: bool = False) -> None:
        """Write the status if a second has passed, or if this is the last call."""
        if not last and time.monotonic() < self._next_write:
            return
        self._next_write = time.monotonic() + STATUS_INTERVAL_S
        self._write("ended" if last else "running", runner.stats, runner.lag, runner.committed_at)

    def _write(self, state: str, stats: RunStats, lag: tuple[int, str] | None, committed_at: float | None) -> None:
        payload = {
            "source": self.source,
            "pid": os.getpid(),
            "state": state,
            "started_at": self._started_at,
            "updated_at": time.time(),
            "points_per_s": self._update_rate(stats.points),
            "lag": lag,
            "checkpointed_at": committed_at,
            **stats.to_dict(),
        }
        temporary = self.path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(payload), encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:  # the run continues
            if not self._has_warned:
                log.warning("cannot write %s: %s", self.path, (error.strerror or str(error)).lower())
            self._has_warned = True

    def _update_rate(self, points: int) -> float:
        now = time.monotonic()
        self._points_at.append((now, points))
        while now - self._points_at[0][0] > RATE_WINDOW_S and len(self._points_at) > 2:
            self._points_at.popleft()
        since, before = self._points_at[0]
        return (points - before) / (now - since) if now > since else 0.0


def read_status(folder: Path) -> tuple[dict[str, Any], RunStats]:
    """Return the last status of the run with this checkpoint folder, its "state" as it is now, and its counts."""
    path = folder / STATUS_FILE_NAME
    if not folder.is_dir():
        raise InvalidInputError(f"folder: must exist, got {folder}")
    if not path.exists():
        raise InvalidInputError(
            f"folder: must be the checkpoint folder of a `limpet watch`, got {folder} without {STATUS_FILE_NAME}"
        )
    try:
        payload: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stats = RunStats.from_dict(payload)
    except (ValueError, LookupError, TypeError):
        raise InvalidInputError(
            f"folder: must hold the status of a run of this version of limpet, got another in {path}"
        ) from None
    if payload["state"] != "ended" and not is_in_use(folder):
        payload["state"] = "died"
    return payload, stats
