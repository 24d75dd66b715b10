"""A folder of checkpoints: the last few, each whole or not used."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.learners.checkpoint import BytesLike, atomic_write, pack_container, unpack_container
from holdfast.streams.owners import try_lock

log = logging.getLogger("holdfast.streams")
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
    return f"checkpoint-{number:09d}.hf"


def is_in_use(folder: Path) -> bool:
    """Whether a run has this folder to itself just now."""
    try:
        with open(folder / "lock", "rb") as file:
            return not try_lock(file.fileno())
    except OSError:
        return False
