"""A folder of checkpoints: the last few, each whole or not used."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.learners.checkpoint import Bytes, sealed, unsealed, write
from holdfast.streams.owners import locked

log = logging.getLogger("holdfast.streams")
KEPT = 3
NAME = re.compile(r"checkpoint-(\d{9})\.hf")


class Checkpoints:
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
            raise BadInputError(f"checkpoints cannot be kept in {self.folder}: {error.strerror}") from None
        if not locked(self._lock.fileno()):
            self._lock.close()
            raise BadInputError(f"{self.folder} is in use by another run")
        self._last = max(self._numbers(), default=-1)
        for left in self.folder.glob(".checkpoint-*"):  # by a crash in the middle of writing
            left.unlink(missing_ok=True)

    def newest(self) -> tuple[dict[str, Any], memoryview] | None:
        """Header and body of the newest one that is whole; None if there is none at all."""
        numbers = sorted(self._numbers(), reverse=True)
        for number in numbers:
            try:
                found = unsealed((self.folder / _name(number)).read_bytes())
            except (CheckpointError, OSError) as error:
                log.warning("%s cannot be used: %s", self.folder / _name(number), error)
                continue
            if number != numbers[0]:
                log.warning("going on from the checkpoint before: %s", self.folder / _name(number))
            return found
        if numbers:
            raise CheckpointError(
                f"none of the {len(numbers)} checkpoints in {self.folder} can be used. To begin anew, give another "
                "folder, and other files for the results"
            )
        return None

    def save(self, header: dict[str, Any], body: Iterable[Bytes]) -> int:
        """Writes one more, and removes the oldest; its number."""
        self._last += 1
        try:
            write(self.folder / _name(self._last), sealed(header, body))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CheckpointError(f"a checkpoint could not be written to {self.folder}: {why}") from None
        for number in self._numbers():
            if number <= self._last - KEPT:
                (self.folder / _name(number)).unlink(missing_ok=True)
        return self._last

    def close(self) -> None:
        """Lets go of the folder."""
        self._lock.close()

    def _numbers(self) -> list[int]:
        return [int(found[1]) for entry in os.listdir(self.folder) if (found := NAME.fullmatch(entry))]


def _name(number: int) -> str:
    return f"checkpoint-{number:09d}.hf"


def is_in_use(folder: Path) -> bool:
    """Whether a run has this folder to itself just now."""
    try:
        with open(folder / "lock", "rb") as file:
            return not locked(file.fileno())
    except OSError:
        return False
