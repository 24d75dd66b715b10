"""To whom results belong: what one run has written is never taken back by another."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from limpet.exceptions import CheckpointError, InvalidInputError


class SinkOwner(NamedTuple):
    """A run that can go back. since: how much was there before it: bytes, rows or parts."""

    name: str
    since: int


def make_owner(since: int) -> SinkOwner:
    """One that nobody else is."""
    return SinkOwner(uuid4().hex[:12], since)


class OwnerLockFile:
    """The hidden file `.NAME.limpet` next to results, which says whose they are.

    Only a run with checkpoints can go back, so only such a run has its name there. It writes it before its first
    checkpoint. Then a new run does not add to these results, for they would be cut off when the first one is resumed;
    nor does the first one go back where another name is, or none. Attributes of the file itself would be neater, but
    not every file system and not every copy keeps them.
    """

    def __init__(self, results: Path) -> None:
        self.path = results.with_name(f".{results.name}.limpet")

    def read(self) -> SinkOwner | None:
        """Whose they are; None: nobody's."""
        try:
            data = json.loads(self.path.read_bytes())
            return SinkOwner(str(data["owner"]), int(data["since"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInputError(f"{self.path} cannot be read: it should say which run the results are of") from None

    def write(self, owner: SinkOwner) -> bool:
        """They are this one's from now on, even after a crash; False if that cannot be written down."""
        temporary = self.path.with_name(f"{self.path.name}.writing")
        try:
            with open(temporary, "wb") as file:
                file.write(json.dumps({"owner": owner.name, "since": owner.since}).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
            fsync_directory(self.path.parent)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            return False
        return True

    def remove(self) -> None:
        """They are nobody's."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def check_unowned(target: str, owner: SinkOwner | None, count: int) -> None:
    """That a new run may add here. count: how much is there; an owner that has added nothing is none."""
    if owner is not None and count != owner.since:
        raise InvalidInputError(
            f"{target} belongs to the run of another --checkpoint folder, which would take back what is added: give "
            "another file"
        )


def check_owner(target: str, owner: SinkOwner | None, expected_owner: str | None, n_later: int) -> None:
    """That a run may go on here. known: its name as an owner; beyond: how much there is that it would take back."""
    if (None if owner is None else owner.name) != expected_owner and (owner is not None or n_later > 0):
        raise CheckpointError(
            f"{target} has been written to by another run since the checkpoint: nothing was changed. Give another file "
            "and another --checkpoint folder"
        )


def try_lock(handle: int) -> bool:
    """Takes a file or a folder until it is closed; False if another one has it."""
    try:
        import fcntl
    except ImportError:  # not on this system: then nobody watches over it
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return True
    return True


def fsync_directory(folder: Path) -> None:
    """Names that were given or taken away are so after a crash, too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
