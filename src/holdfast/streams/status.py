"""How a run is doing, in a file beside its checkpoints that others can look at."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadInputError
from holdfast.streams.tally import Pace

if TYPE_CHECKING:
    from holdfast.streams.runner import Runner

NAME = "status.json"
EVERY = 1.0  # seconds


class StatusFile:
    """Writes how a run is doing, once a second."""

    def __init__(self, folder: Path, source: str) -> None:
        self.path, self.source = folder / NAME, source
        self._began, self._next, self._pace = time.time(), 0.0, Pace()

    def tick(self, runner: Runner, last: bool = False) -> None:
        """Looks whether it is time to."""
        if not last and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        told = {
            "source": self.source,
            "pid": os.getpid(),
            "state": "ended" if last else "running",
            "began": self._began,
            "updated": time.time(),
            "rate": self._pace.rate(runner.tally.points),
            "behind": runner.behind,
            "last_checkpoint": runner.committed_at,
            **runner.tally.as_json(),
        }
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(told), encoding="utf-8")
        os.replace(temporary, self.path)


def read_status(folder: Path) -> dict[str, Any]:
    """How the run of this folder was doing when it last said so; "state" is what has become of it."""
    path = folder / NAME
    if not folder.is_dir():
        raise BadInputError(f"there is no folder {folder}")
    if not path.exists():
        raise BadInputError(f"{folder} is not the checkpoint folder of a `holdfast watch`: it has no {NAME}")
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if told["state"] == "running" and not _is_alive(told["pid"]):
        told["state"] = "died"
    return told


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
