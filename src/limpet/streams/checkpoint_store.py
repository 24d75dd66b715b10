"""The folder of a run: checkpoints, checks for resuming from one, and status."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, from_bytes
from limpet.learners.base import Learner
from limpet.learners.serialization import BytesLike, atomic_write, pack_container, unpack_container
from limpet.streams.batch import Batch
from limpet.streams.results import RunStats
from limpet.streams.sinks.files import try_lock

if TYPE_CHECKING:
    from limpet.streams.runner import Runner

log = logging.getLogger("limpet.streams")
RUN_FORMAT_VERSION = 4
MAX_KEPT_CHECKPOINTS = 3
FILE_NAME_PATTERN = re.compile(r"checkpoint-(\d{9})\.limpet")
STATUS_FILE_NAME = "status.json"
STATUS_INTERVAL_S = 1.0
RATE_WINDOW_S = 10.0
LearnerOrFleet = Learner | Fleet


class CheckpointStore:
    """Checkpoints of a run, in a folder that it creates if necessary and locks.

    Each is a file with a checksum, written under a temporary name, synchronized to the disk and renamed. A truncated or
    altered one is skipped with a warning.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock: IO[bytes] = open(self.folder / "lock", "ab")  # noqa: SIM115
        except OSError as error:
            raise InvalidInputError(f"checkpoint: cannot write to {self.folder}: {error.strerror}.") from None
        if not try_lock(self._lock.fileno()):
            self._lock.close()
            raise InvalidInputError(f"checkpoint: {self.folder} is in use by another run. Use another folder.")
        self._last = max(self._list_numbers(), default=-1)
        others = sorted(path.name for path in self.folder.glob("checkpoint-*"))
        if self._last < 0 and others:
            self._lock.close()
            raise CheckpointError(
                f"checkpoint: must be of this version of limpet, got {self.folder} with {others[0]}. Use a new folder."
            )
        for leftover in self.folder.glob(".checkpoint-*"):  # of a crash while writing
            leftover.unlink(missing_ok=True)

    def latest(self) -> tuple[dict[str, Any], memoryview] | None:
        """Return header and body of the latest valid checkpoint, None if none exists."""
        numbers = sorted(self._list_numbers(), reverse=True)
        for number in numbers:
            try:
                checkpoint = unpack_container((self.folder / _make_file_name(number)).read_bytes())
            except (CheckpointError, OSError) as error:
                log.warning("%s cannot be used: %s", self.folder / _make_file_name(number), error)
                continue
            if number != numbers[0]:
                log.warning("resuming from the previous checkpoint: %s", self.folder / _make_file_name(number))
            return checkpoint
        if numbers:
            raise CheckpointError(
                f"checkpoint: all {len(numbers)} files in {self.folder} are damaged. To start from scratch, use "
                "another folder, and other files for the results."
            )
        return None

    def save(self, header: dict[str, Any], body: Iterable[BytesLike]) -> int:
        """Write a checkpoint, remove the oldest, and return the number of the new one."""
        self._last += 1
        try:
            atomic_write(self.folder / _make_file_name(self._last), pack_container(header, body))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CheckpointError(f"checkpoint: cannot write to {self.folder}: {reason}.") from None
        for number in self._list_numbers():
            if number <= self._last - MAX_KEPT_CHECKPOINTS:
                (self.folder / _make_file_name(number)).unlink(missing_ok=True)
        return self._last

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()

    def _list_numbers(self) -> list[int]:
        return [int(match[1]) for entry in os.listdir(self.folder) if (match := FILE_NAME_PATTERN.fullmatch(entry))]


def _make_file_name(number: int) -> str:
    return f"checkpoint-{number:09d}.limpet"


def is_in_use(folder: Path) -> bool:
    """Return whether a run has locked a folder."""
    try:
        with open(folder / "lock", "rb") as file:
            return not try_lock(file.fileno())
    except OSError:
        return False


def learner_config(learner: LearnerOrFleet) -> dict[str, Any]:
    """Return all parameters, with defaults, but `on_invalid`, which may change."""
    single, max_keys = (learner.learner, learner.max_keys) if isinstance(learner, Fleet) else (learner, None)
    description = single.config()
    settings = {name: value for name, value in description["settings"].items() if name != "on_invalid"}
    kind = {"fleet": isinstance(learner, Fleet), "learner": description["learner"], "max_keys": max_keys}
    config: dict[str, Any] = kind | json.loads(json.dumps(settings))
    return config


def check_compatible(header: dict[str, Any], learner: LearnerOrFleet, run_fields: Mapping[str, Any]) -> None:
    """Raise if a checkpoint has other parameters, source or columns than this run."""
    if header.get("run_format") != RUN_FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint: must have run format {RUN_FORMAT_VERSION}, got {header.get('run_format')}. Use a new folder."
        )
    current = learner_config(learner)
    pairs = [(header["run_fields"], json.loads(json.dumps(dict(run_fields)))), (header["learner"], current)]
    for before, after in pairs:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                raise CheckpointError(
                    f"{name}: the checkpoint has {_format_value(before.get(name))}, got "
                    f"{_format_value(after.get(name))}. Use the same, or another folder for checkpoints."
                    f"{' Options of a URL are shown as a digest.' if '?' in str(after.get(name)) else ''}"
                )


def check_position(batch: Batch) -> None:
    """Raise if a run could not resume after a batch."""
    position = batch.position
    if position is None and batch.n_records:
        raise InvalidInputError("position: each batch of a source must have one for a run with checkpoints, got None.")
    try:
        json.dumps(position)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"position: JSON must be able to hold it, got {position!r:.80}: {error}.") from None


def restore_learner(learner: LearnerOrFleet, state: memoryview) -> LearnerOrFleet:
    """Return the checkpoint's learner or fleet; close the given one's spill file."""
    spill = None
    if isinstance(learner, Fleet) and (spill := learner.config()["spill"]) is not None:
        learner.close()
    return from_bytes(bytearray(state), spill)


def _format_value(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
    """Return the last status of a run, with its current "state", and its counts."""
    path = folder / STATUS_FILE_NAME
    if not folder.is_dir():
        raise InvalidInputError(f"folder: must exist, got {folder}.")
    if not path.exists():
        raise InvalidInputError(
            f"folder: must be the checkpoint folder of a `limpet watch`, got {folder} without {STATUS_FILE_NAME}."
        )
    try:
        payload: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stats = RunStats.from_dict(payload)
    except (ValueError, LookupError, TypeError):
        raise InvalidInputError(
            f"folder: must hold the status of a run of this version of limpet, got another in {path}."
        ) from None
    if payload["state"] != "ended" and not is_in_use(folder):
        payload["state"] = "crashed"
    return payload, stats
