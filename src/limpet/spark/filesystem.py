"""Which addresses are of this machine, and which Spark alone can reach."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from limpet.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A folder that Spark can reach: on this machine, HDFS, S3, …


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


SCHEME_PATTERN = re.compile(r"([A-Za-z][\w+.-]*):")
FILE_SCHEME_PATTERN = re.compile(r"file:(?://[^/]*)?")
HADOOP_CONFIG_VARIABLES = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
)  # where a default file system is set


def get_scheme(uri: str) -> str:
    """Of an address, such as s3a://bucket/x or hdfs:/x; of a plain path none.

    >>> scheme_of("hdfs:/x"), scheme_of("S3A://bucket/x"), scheme_of("/x/10:00.csv"), scheme_of("state")
    ('hdfs', 's3a', '', '')
    """
    match = SCHEME_PATTERN.match(uri)
    return match[1].lower() if match else ""


def to_local_path(uri: str) -> str | None:
    """The path on this machine that an address means; None for one of elsewhere.

    >>> local_path("file:/x/y"), local_path("file:///x/y"), local_path("x/y"), local_path("hdfs:/x")
    ('/x/y', '/x/y', 'x/y', None)
    """
    scheme = get_scheme(uri)
    return uri if not scheme else FILE_SCHEME_PATTERN.sub("", uri, count=1) if scheme == "file" else None


def to_absolute_uri(uri: str) -> str:
    """An address as Spark finds it, which may have been begun in another folder.

    >>> whole("hdfs:/x"), whole("file:/x")
    ('hdfs:/x', 'file:/x')
    """
    if get_scheme(uri) == "file":
        return "file:" + os.path.abspath(FILE_SCHEME_PATTERN.sub("", uri, count=1))
    return uri if get_scheme(uri) else os.path.abspath(uri)


def may_be_remote(uri: str, values: Mapping[str, Any]) -> bool:
    """Whether a path that is not on this machine may be one of Spark's: its file system may be another by default."""
    if get_scheme(uri):
        return to_local_path(uri) is None
    has_default_filesystem = any("fs.defaultfs" in setting.lower() for setting in values.get("conf") or ())
    return (
        has_default_filesystem
        or not values["master"].startswith("local")
        or any(os.environ.get(name) for name in HADOOP_CONFIG_VARIABLES)
    )
