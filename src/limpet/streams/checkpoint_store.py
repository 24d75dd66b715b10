"""Checkpoints of runs: a directory of files, and checks of whether a run can resume from one."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, from_bytes
from limpet.learners.base import Learner
from limpet.learners.serialization import BytesLike, atomic_write, pack_container, unpack_container
from limpet.streams.batch import Batch
from limpet.streams.sinks.files import try_lock

log = logging.getLogger("limpet.streams")
RUN_FORMAT_VERSION = 2
MAX_KEPT_CHECKPOINTS = 3
FILE_NAME_PATTERN = re.compile(r"checkpoint-(\d{9})\.limpet")
Model = Learner | Fleet


class CheckpointStore:
    """The checkpoints of one run, in a directory that is created if necessary, and locked by the run.

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
            raise InvalidInputError(f"checkpoint: {self.folder} is in use by another run. Use another directory.")
        self._last = max(self._list_numbers(), default=-1)
        others = sorted(path.name for path in self.folder.glob("checkpoint-*"))
        if self._last < 0 and others:
            self._lock.close()
            raise CheckpointError(
                f"checkpoint: must be a directory of this version of limpet, got {self.folder} with {others[0]}. "
                "Use another directory."
            )
        for leftover in self.folder.glob(".checkpoint-*"):  # of a crash while writing
            leftover.unlink(missing_ok=True)

    def latest(self) -> tuple[dict[str, Any], memoryview] | None:
        """Return header and body of the latest valid checkpoint; None if the directory has none."""
        numbers = sorted(self._list_numbers(), reverse=True)
        for number in numbers:
            try:
                checkpoint = unpack_container((self.folder / _make_file_name(number)).read_bytes())
            except (CheckpointError, OSError) as error:
                log.warning("%s cannot be used: %s", self.folder / _make_file_name(number), error)
                continue
            if number != numbers[0]:
                log.warning("resuming from the checkpoint before: %s", self.folder / _make_file_name(number))
            return checkpoint
        if numbers:
            raise CheckpointError(
                f"checkpoint: all {len(numbers)} files in {self.folder} are damaged. To start from scratch, use "
                "another directory, and other files for the results."
            )
        return None

    def save(self, header: dict[str, Any], body: Iterable[BytesLike]) -> int:
        """Write a checkpoint, remove the oldest, and return the number of the new one."""
        self._last += 1
        try:
            atomic_write(self.folder / _make_file_name(self._last), pack_container(header, body))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CheckpointError(f"checkpoint: cannot write to {self.folder}: {why}.") from None
        for number in self._list_numbers():
            if number <= self._last - MAX_KEPT_CHECKPOINTS:
                (self.folder / _make_file_name(number)).unlink(missing_ok=True)
        return self._last

    def close(self) -> None:
        """Unlock the directory."""
        self._lock.close()

    def _list_numbers(self) -> list[int]:
        return [int(match[1]) for entry in os.listdir(self.folder) if (match := FILE_NAME_PATTERN.fullmatch(entry))]


def _make_file_name(number: int) -> str:
    return f"checkpoint-{number:09d}.limpet"


def is_in_use(folder: Path) -> bool:
    """Return whether a run has locked a directory."""
    try:
        with open(folder / "lock", "rb") as file:
            return not try_lock(file.fileno())
    except OSError:
        return False


def model_config(model: Model) -> dict[str, Any]:
    """Return the parameters of a model, defaults included, except `on_invalid`, which may change."""
    learner, max_keys = (model.learner, model.max_keys) if isinstance(model, Fleet) else (model, None)
    description = learner._config(None, None)
    settings = {name: value for name, value in description["settings"].items() if name != "on_invalid"}
    json_settings: dict[str, Any] = json.loads(json.dumps(settings))
    return {"fleet": isinstance(model, Fleet), "learner": description["learner"], "max_keys": max_keys, **json_settings}


def check_compatible(header: dict[str, Any], model: Model, run_fields: Mapping[str, Any]) -> None:
    """Raise if a checkpoint has other parameters, another source or other columns than this run."""
    if header.get("run_format") != RUN_FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint: must have run format {RUN_FORMAT_VERSION}, got {header.get('run_format')}. "
            "Use another directory."
        )
    current = model_config(model)
    pairs = [(header["run_fields"], json.loads(json.dumps(dict(run_fields)))), (header["model"], current)]
    for before, after in pairs:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                raise CheckpointError(
                    f"{name}: the checkpoint has {_format_value(before.get(name))}, got "
                    f"{_format_value(after.get(name))}. Use the same, or another directory for checkpoints."
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


def restore_model(model: Model, state: memoryview) -> Model:
    """Restore the model of a checkpoint in place of the given one, whose spill file is closed."""
    spill = None
    if isinstance(model, Fleet) and (spill := model.config()["spill"]) is not None:
        model.close()
    return from_bytes(bytearray(state), spill)


def _format_value(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
