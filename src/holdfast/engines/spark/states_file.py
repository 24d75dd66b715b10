"""The states that a generation begins with: a ZIP archive, of which one bucket is read without the others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from zipfile import BadZipFile, ZipFile

from holdfast.engines.spark.bucket import PartitionState
from holdfast.engines.spark.plan import JobSpec
from holdfast.engines.spark.state import restore_partition
from holdfast.errors import CheckpointError

PartitionBytes = tuple[int, bytes, bytes]  # the bucket, the bytes of its fleet, the times of its streams


def write_states(path: str | os.PathLike[str], parts: Iterable[PartitionBytes]) -> None:
    """Writes such a file."""
    with ZipFile(path, "w") as archive:
        for number, fleet, times in parts:
            archive.writestr(f"{number}/fleet", fleet)
            archive.writestr(f"{number}/times", times)


class StatesFile:
    """Such a file, to be read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def list_partitions(self) -> list[int]:
        """The buckets that are in it."""
        with self._open() as archive:
            return sorted({int(name.partition("/")[0]) for name in archive.namelist()})

    def read_partition(self, number: int, spec: JobSpec) -> PartitionState | None:
        """A bucket as it began; None if it is not in it."""
        with self._open() as archive:
            if f"{number}/fleet" not in archive.NameToInfo:
                return None
            return restore_partition(archive.read(f"{number}/fleet"), archive.read(f"{number}/times"), spec)

    def _open(self) -> ZipFile:
        try:
            return ZipFile(self.path)
        except BadZipFile as error:
            raise CheckpointError(f"{self.path} holds no states: {error}") from None
