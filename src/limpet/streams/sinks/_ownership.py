"""Ownership of results: a run never truncates what another run has written."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from limpet.exceptions import CheckpointError, InvalidInputError


class SinkOwner(NamedTuple):
    """A run that may truncate.

    `since` is the size before its first write, in bytes, rows or parts.
    """

    name: str
    since: int


def make_owner(since: int) -> SinkOwner:
    """Return an owner with a unique name."""
    return SinkOwner(uuid4().hex[:12], since)


class OwnerLockFile:
    """The hidden file `.NAME.limpet` beside results, which names their owner.

    Only a run with checkpoints truncates results, so only such a run is an owner. It writes its name before its first
    checkpoint. A new run does not append to owned results, since they would be truncated when the owner resumes; the
    owner does not truncate results that have another owner, or none. Extended attributes of the results would need no
    second file, but not every file system and not every copy keeps them.
    """

    def __init__(self, results: Path) -> None:
        self.path = results.with_name(f".{results.name}.limpet")

    def read(self) -> SinkOwner | None:
        """Return the owner, None if the results have none."""
        try:
            data = json.loads(self.path.read_bytes())
            return SinkOwner(str(data["owner"]), int(data["since"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInputError(f"{self.path}: must name the owner of the results, cannot be read") from None

    def write(self, owner: SinkOwner) -> bool:
        """Set the owner durably; return False if the file cannot be written."""
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
        """Remove the owner."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def check_unowned(target: str, owner: SinkOwner | None, count: int) -> None:
    """Raise if a new run must not append.

    An owner that has not written anything is ignored.
    """
    if owner is not None and count != owner.since:
        raise InvalidInputError(
            f"{target}: must not belong to another --checkpoint folder, whose run would truncate it. Give another file"
        )


def check_owner(target: str, owner: SinkOwner | None, expected_owner: str | None, n_later: int) -> None:
    """Raise if a run must not resume, since another run has written results."""
    if (None if owner is None else owner.name) != expected_owner and (owner is not None or n_later > 0):
        raise CheckpointError(
            f"{target}: another run has written to it since the checkpoint. Nothing was changed. Give another file and "
            "another --checkpoint folder"
        )


def try_lock(handle: int) -> bool:
    """Lock an open file or folder until it is closed.

    Return False if another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows: without a lock
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return True
    return True


def fsync_directory(folder: Path) -> None:
    """Make the creation, renaming and removal of files in a folder durable."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
