"""A folder that Spark can reach: on this machine, HDFS, S3, …"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Readable(Protocol):
    """A folder that can be looked at."""

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""

    def read(self, name: str) -> str:
        """A file as text."""


class LocalFolder:
    """A folder of this machine, which is looked at without Spark."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""
        place = self.path / folder
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def read(self, name: str) -> str:
        """A file as text."""
        return (self.path / name).read_text(encoding="utf-8")


class Folder:
    """A folder by its address, through the file systems that Spark knows."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        jvm = getattr(spark, "_jvm", None)
        if jvm is None:
            raise BadInputError("checkpoints are looked at by Spark's driver: this needs a session that is not remote")
        self.address = address.rstrip("/")
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(self.address)
        self._system = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    @property
    def real(self) -> str:
        """The same for all ways to write its address."""
        return str(self._system.makeQualified(self._path).toString())

    @property
    def given_out(self) -> str:
        """Its address for `addFile`, to which what has no scheme is a folder of this machine."""
        qualified = self._system.makeQualified(self._path)
        is_here = str(qualified.toUri().getScheme()) == "file"
        return str(qualified.toUri().getPath() if is_here else qualified.toString())

    @property
    def is_plain(self) -> bool:
        """Whether its address has no spaces and the like, which Spark's reader of states does not find its way with."""
        uri = self._path.toUri()
        return bool(uri.getRawPath() == uri.getPath())

    def at(self, name: str) -> str:
        """The address of a file or a folder in it."""
        return f"{self.address}/{name}"

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""
        path = self._inside(folder)
        if not self._system.exists(path):
            return []
        return sorted(str(one.getPath().getName()) for one in self._system.listStatus(path))

    def read(self, name: str) -> str:
        """A file as text."""
        stream = self._system.open(self._inside(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """A new file, whole or not at all; one that is there already is an error."""
        temporary = self._inside(f"{os.path.dirname(name)}/.{os.path.basename(name)}.{os.urandom(4).hex()}")
        stream = self._system.create(temporary, False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if self._system.exists(self._inside(name)) or not self._system.rename(temporary, self._inside(name)):
            self._system.delete(temporary, False)
            raise BadInputError(f"{self.at(name)} is there already: does another job use this checkpoint?")

    def take_in(self, local: str | os.PathLike[str], name: str) -> None:
        """Copies a file of this machine; one of that name is replaced."""
        source = self._jvm.org.apache.hadoop.fs.Path("file:" + os.path.abspath(local))
        self._system.mkdirs(self._inside(os.path.dirname(name)))
        self._system.copyFromLocalFile(False, True, source, self._inside(name))

    def give_out(self, name: str, local: str | os.PathLike[str]) -> None:
        """Copies a file to this machine."""
        target = self._jvm.org.apache.hadoop.fs.Path("file:" + os.path.abspath(local))
        self._system.copyToLocalFile(False, self._inside(name), target, True)

    def _inside(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name) if name else self._path
