"""A folder that Spark can reach: on this machine, HDFS, S3, …"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ReadableDirectory(Protocol):
    """A folder that can be looked at."""

    def list_names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""

    def read_text(self, name: str) -> str:
        """A file as text."""


class LocalDirectory:
    """A folder of this machine, which is looked at without Spark."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def list_names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""
        path = self.path / folder
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def read_text(self, name: str) -> str:
        """A file as text."""
        return (self.path / name).read_text(encoding="utf-8")


class RemoteDirectory:
    """A folder by its address, through the file systems that Spark knows."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm = getattr(spark, "_jvm", None)
        if jvm is None:
            raise InvalidInputError(
                "checkpoints are looked at by Spark's driver: this needs a session that is not remote"
            )
        self.uri = uri.rstrip("/")
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(self.uri)
        self._filesystem = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    @property
    def canonical_uri(self) -> str:
        """The same for all ways to write its address."""
        return str(self._filesystem.makeQualified(self._path).toString())

    @property
    def distribution_uri(self) -> str:
        """Its address for `addFile`, to which what has no scheme is a folder of this machine."""
        qualified = self._filesystem.makeQualified(self._path)
        is_here = str(qualified.toUri().getScheme()) == "file"
        return str(qualified.toUri().getPath() if is_here else qualified.toString())

    @property
    def has_plain_path(self) -> bool:
        """Whether its address has no spaces and the like, which Spark's reader of states does not find its way with."""
        uri = self._path.toUri()
        return bool(uri.getRawPath() == uri.getPath())

    def child_uri(self, name: str) -> str:
        """The address of a file or a folder in it."""
        return f"{self.uri}/{name}"

    def list_names(self, folder: str = "") -> list[str]:
        """What is in a folder of it; nothing if it is not there."""
        path = self._child_path(folder)
        if not self._filesystem.exists(path):
            return []
        return sorted(str(entry.getPath().getName()) for entry in self._filesystem.listStatus(path))

    def read_text(self, name: str) -> str:
        """A file as text."""
        stream = self._filesystem.open(self._child_path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write_text(self, name: str, text: str) -> None:
        """A new file, whole or not at all; one that is there already is an error."""
        temporary = self._child_path(f"{os.path.dirname(name)}/.{os.path.basename(name)}.{os.urandom(4).hex()}")
        stream = self._filesystem.create(temporary, False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if self._filesystem.exists(self._child_path(name)) or not self._filesystem.rename(
            temporary, self._child_path(name)
        ):
            self._filesystem.delete(temporary, False)
            raise InvalidInputError(f"{self.child_uri(name)} is there already: does another job use this checkpoint?")

    def upload(self, local: str | os.PathLike[str], name: str) -> None:
        """Copies a file of this machine; one of that name is replaced."""
        source = self._jvm.org.apache.hadoop.fs.Path("file:" + os.path.abspath(local))
        self._filesystem.mkdirs(self._child_path(os.path.dirname(name)))
        self._filesystem.copyFromLocalFile(False, True, source, self._child_path(name))

    def download(self, name: str, local: str | os.PathLike[str]) -> None:
        """Copies a file to this machine."""
        target = self._jvm.org.apache.hadoop.fs.Path("file:" + os.path.abspath(local))
        self._filesystem.copyToLocalFile(False, self._child_path(name), target, True)

    def _child_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name) if name else self._path
