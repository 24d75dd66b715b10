"""Ownership of results: a run never truncates what another run has written."""

from __future__ import annotations

import contextlib
import json
from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.learners.serialization import atomic_write
from limpet.streams.results import check_table
from limpet.streams.sinks.base import BaseSink, check_offset


class SinkOwner(NamedTuple):
    """A run that may truncate; `since` is the size before its first write, in bytes, rows or parts."""

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
        try:
            atomic_write(self.path, [json.dumps({"owner": owner.name, "since": owner.since}).encode()])
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the owner."""
        with contextlib.suppress(OSError):
            self.path.unlink()


class OwnedSink(BaseSink):
    """Results in a file or folder that one run at a time can write to, from `truncate_to`, which locks it, to `close`.

    A run with checkpoints owns the results permanently, see `OwnerLockFile`.
    """

    is_exclusive = True

    def __init__(self, path: Path, table: str) -> None:
        self.path, self.table = path, check_table(table)
        self.name = f"{table} in {path.resolve()}"
        self._owners, self._is_new = OwnerLockFile(path.resolve()), not path.exists()
        self._owner: str | None = None
        self._started = False

    @abstractmethod
    def _lock(self) -> bool:
        """Lock the results; return False if another process holds the lock."""

    @abstractmethod
    def _count(self) -> int:
        """Return the size of the results."""

    @abstractmethod
    def _truncate(self, offset: dict[str, Any]) -> None:
        """Truncate the results to the offset of an earlier run with the same owner."""

    def truncate_to(self, offset: Any) -> None:
        """Truncate the results to the offset."""
        try:
            if not self._lock():
                raise InvalidInputError(f"{self.path}: in use by another run, or given twice")
            if offset is None:
                self._start()
            else:
                self._truncate(check_offset(self, offset))
        except BaseException:
            self.close()
            raise
        self._started = True

    def _start(self) -> None:
        if self._is_new:
            self._owners.remove()
        check_unowned(str(self.path), self._owners.read(), self._count())
        self._owners.remove()  # an owner that has not written anything

    def acquire(self) -> None:
        """Become the owner of what is appended from now on."""
        owner = make_owner(self._count())
        self._owner = owner.name if self._owners.write(owner) else None


def check_folder(path: Path) -> None:
    """Raise if the folder of a file is missing."""
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"{path}: cannot be written, its folder {path.parent} does not exist")


def check_unowned(target: str, owner: SinkOwner | None, count: int) -> None:
    """Raise if a new run must not append; an owner that has not written anything is ignored."""
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
    """Lock an open file or folder until it is closed; return False if another process holds the lock."""
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
