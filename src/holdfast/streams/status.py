"""How a run is doing, in a file beside its checkpoints that others can look at."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadInputError
from holdfast.streams.checkpoints import is_in_use
from holdfast.streams.tally import Pace, Tally

if TYPE_CHECKING:
    from holdfast.streams.runner import Runner

log = logging.getLogger("holdfast.streams")
NAME = "status.json"
EVERY = 1.0  # seconds


class StatusFile:
    """Writes how a run is doing, once a second."""

    def __init__(self, folder: Path, source: str) -> None:
        self.path, self.source = folder / NAME, source
        self._began, self._next, self._pace = time.time(), 0.0, Pace()
        self._is_told = False
        self._write("waiting for the first record", Tally(), None, None)

    def tick(self, runner: Runner, last: bool = False) -> None:
        """Looks whether it is time to."""
        if not last and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        self._write("ended" if last else "running", runner.tally, runner.behind, runner.committed_at)

    def _write(self, state: str, tally: Tally, behind: tuple[int, str] | None, committed_at: float | None) -> None:
        told = {
            "source": self.source,
            "pid": os.getpid(),
            "state": state,
            "began": self._began,
            "updated": time.time(),
            "rate": self._pace.rate(tally.points),
            "behind": behind,
            "last_checkpoint": committed_at,
            **tally.as_json(),
        }
        temporary = self.path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(told), encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:  # which is no reason to stop
            if not self._is_told:
                log.warning("%s could not be written: %s", self.path, (error.strerror or str(error)).lower())
            self._is_told = True


def read_status(folder: Path) -> dict[str, Any]:
    """How the run of this folder was doing when it last said so; "state" is what has become of it."""
    path = folder / NAME
    if not folder.is_dir():
        raise BadInputError(f"there is no folder {folder}")
    if not path.exists():
        raise BadInputError(f"{folder} is not the checkpoint folder of a `holdfast watch`: it has no {NAME}")
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if told["state"] != "ended" and not is_in_use(folder):
        told["state"] = "died"
    return told
