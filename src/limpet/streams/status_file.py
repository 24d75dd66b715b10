"""How a run is doing, in a file beside its checkpoints that others can look at."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet.exceptions import InvalidInputError
from limpet.streams.checkpoint_store import is_in_use
from limpet.streams.run_stats import RateMeter, RunStats

if TYPE_CHECKING:
    from limpet.streams.runner import Runner


log = logging.getLogger("limpet.streams")
STATUS_FILE_NAME = "status.json"
STATUS_INTERVAL_S = 1.0  # seconds


class StatusFile:
    """Writes how a run is doing, once a second."""

    def __init__(self, folder: Path, source: str) -> None:
        self.path, self.source = folder / STATUS_FILE_NAME, source
        self._started_at, self._next_write, self._rate_meter = time.time(), 0.0, RateMeter()
        self._has_warned = False
        self._write("waiting for the first record", RunStats(), None, None)

    def tick(self, runner: Runner, last: bool = False) -> None:
        """Looks whether it is time to."""
        if not last and time.monotonic() < self._next_write:
            return
        self._next_write = time.monotonic() + STATUS_INTERVAL_S
        self._write("ended" if last else "running", runner.stats, runner.lag, runner.committed_at)

    def _write(self, state: str, stats: RunStats, lag: tuple[int, str] | None, committed_at: float | None) -> None:
        payload = {
            "source": self.source,
            "pid": os.getpid(),
            "state": state,
            "began": self._started_at,
            "updated": time.time(),
            "rate": self._rate_meter.rate(stats.points),
            "behind": lag,
            "last_checkpoint": committed_at,
            **stats.to_dict(),
        }
        temporary = self.path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(payload), encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:  # which is no reason to stop
            if not self._has_warned:
                log.warning("%s could not be written: %s", self.path, (error.strerror or str(error)).lower())
            self._has_warned = True


def read_status(folder: Path) -> dict[str, Any]:
    """How the run of this folder was doing when it last said so; "state" is what has become of it."""
    path = folder / STATUS_FILE_NAME
    if not folder.is_dir():
        raise InvalidInputError(f"there is no folder {folder}")
    if not path.exists():
        raise InvalidInputError(
            f"{folder} is not the checkpoint folder of a `limpet watch`: it has no {STATUS_FILE_NAME}"
        )
    payload: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if payload["state"] != "ended" and not is_in_use(folder):
        payload["state"] = "died"
    return payload
