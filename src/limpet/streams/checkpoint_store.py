"""What a checkpoint of a run holds, and what must be the same for a run to go on from it."""

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
from limpet.learners.base import StochasticApproximation
from limpet.learners.serialization import BytesLike, atomic_write, pack_container, unpack_container
from limpet.streams.batch import Batch
from limpet.streams.sinks._ownership import try_lock

# A folder of checkpoints: the last few, each whole or not used.

log = logging.getLogger("limpet.streams")
MAX_KEPT_CHECKPOINTS = 3
FILE_NAME_PATTERN = re.compile(r"checkpoint-(\d{9})\.hf")


class CheckpointStore:
    """The checkpoints of one run, which has the folder to itself.

    Each is a file of its own, written under a temporary name, flushed to the disk and renamed, with a checksum over
    all of it. One that is torn or altered is passed over, and said so.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock: IO[bytes] = open(self.folder / "lock", "ab")  # noqa: SIM115
        except OSError as error:
            raise InvalidInputError(f"checkpoints cannot be kept in {self.folder}: {error.strerror}") from None
        if not try_lock(self._lock.fileno()):
            self._lock.close()
            raise InvalidInputError(f"{self.folder} is in use by another run")
        self._last = max(self._list_numbers(), default=-1)
        for leftover in self.folder.glob(".checkpoint-*"):  # by a crash in the middle of writing
            leftover.unlink(missing_ok=True)

    def latest(self) -> tuple[dict[str, Any], memoryview] | None:
        """Header and body of the newest one that is whole; None if there is none at all."""
        numbers = sorted(self._list_numbers(), reverse=True)
        for number in numbers:
            try:
                checkpoint = unpack_container((self.folder / _make_file_name(number)).read_bytes())
            except (CheckpointError, OSError) as error:
                log.warning("%s cannot be used: %s", self.folder / _make_file_name(number), error)
                continue
            if number != numbers[0]:
                log.warning("going on from the checkpoint before: %s", self.folder / _make_file_name(number))
            return checkpoint
        if numbers:
            raise CheckpointError(
                f"none of the {len(numbers)} checkpoints in {self.folder} can be used. To begin anew, give another "
                "folder, and other files for the results"
            )
        return None

    def save(self, header: dict[str, Any], body: Iterable[BytesLike]) -> int:
        """Writes one more, and removes the oldest; its number."""
        self._last += 1
        try:
            atomic_write(self.folder / _make_file_name(self._last), pack_container(header, body))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CheckpointError(f"a checkpoint could not be written to {self.folder}: {why}") from None
        for number in self._list_numbers():
            if number <= self._last - MAX_KEPT_CHECKPOINTS:
                (self.folder / _make_file_name(number)).unlink(missing_ok=True)
        return self._last

    def close(self) -> None:
        """Lets go of the folder."""
        self._lock.close()

    def _list_numbers(self) -> list[int]:
        return [int(match[1]) for entry in os.listdir(self.folder) if (match := FILE_NAME_PATTERN.fullmatch(entry))]


def _make_file_name(number: int) -> str:
    return f"checkpoint-{number:09d}.limpet"


def is_in_use(folder: Path) -> bool:
    """Whether a run has this folder to itself just now."""
    try:
        with open(folder / "lock", "rb") as file:
            return not try_lock(file.fileno())
    except OSError:
        return False


RUN_FORMAT_VERSION = 1
Model = StochasticApproximation | Fleet


def model_config(model: Model) -> dict[str, Any]:
    """All that a model was made with, defaults included; `on_invalid` may change."""
    learner, max_keys = (model.learner, model.max_keys) if isinstance(model, Fleet) else (model, None)
    description = learner._config(None, None)
    settings = {name: value for name, value in description["settings"].items() if name != "on_invalid"}
    json_settings: dict[str, Any] = json.loads(json.dumps(settings))
    return {"fleet": isinstance(model, Fleet), "learner": description["learner"], "max_keys": max_keys, **json_settings}


def check_compatible(header: dict[str, Any], model: Model, about: Mapping[str, Any]) -> None:
    """Refuses a checkpoint of another run: with other settings, of another source, of other columns."""
    if header.get("run_format") != RUN_FORMAT_VERSION:
        raise CheckpointError(
            f"these checkpoints have format {header.get('run_format')}, this limpet {RUN_FORMAT_VERSION}"
        )
    current = model_config(model)
    pairs = [(header["about"], json.loads(json.dumps(dict(about)))), (header["model"], current)]
    for before, after in pairs:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                raise CheckpointError(
                    f"the checkpoint was made with {name} = {_format_value(before.get(name))}, now it is "
                    f"{_format_value(after.get(name))}: give the same, or another folder for checkpoints"
                )


def check_position(batch: Batch) -> None:
    """Refuses a batch of records after which a run could not go on."""
    position = batch.position
    if position is None and batch.n_records:
        raise InvalidInputError("with a checkpoint, each batch of a source must have the position after it")
    try:
        json.dumps(position)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"a position is something that JSON can hold, got {position!r:.80}: {error}") from None


def restore_model(model: Model, state: memoryview) -> Model:
    """The model as it was, in place of this one, which lets go of its file."""
    spill = None
    if isinstance(model, Fleet) and model._membership.spill is not None:
        spill = model._membership.spill.path
        model.close()
    return from_bytes(bytearray(state), spill)


def _format_value(value: Any) -> str:
    return "not given" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
