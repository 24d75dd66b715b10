"""Read and write folders that Spark can reach: local, HDFS, S3 and others."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from limpet.exceptions import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LocalDirectory:
    """A folder of this machine, read without Spark."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder of it, none if it is missing."""
        path = self.path / folder
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def read_text(self, name: str) -> str:
        """Return the content of a file."""
        return (self.path / name).read_text(encoding="utf-8")


class RemoteDirectory:
    """A folder by its URI, through the file systems of Spark."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm = getattr(spark, "_jvm", None)
        if jvm is None:
            raise InvalidInputError(
                "checkpoint: requires a session whose driver runs in this process, got one of Spark Connect."
            )
        self.uri = uri.rstrip("/")
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(self.uri)
        self._filesystem = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    @property
    def canonical_uri(self) -> str:
        """The URI in one form, for comparisons."""
        return str(self._filesystem.makeQualified(self._path).toString())

    @property
    def distribution_uri(self) -> str:
        """The URI for `addFile`, which takes a path without scheme as local."""
        qualified = self._filesystem.makeQualified(self._path)
        is_local = str(qualified.toUri().getScheme()) == "file"
        return str(qualified.toUri().getPath() if is_local else qualified.toString())

    @property
    def has_plain_path(self) -> bool:
        """Whether the path needs no escapes, which Spark's state reader cannot read."""
        uri = self._path.toUri()
        return bool(uri.getRawPath() == uri.getPath())

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder of it, none if it is missing."""
        path = self._child_path(folder)
        if not self._filesystem.exists(path):
            return []
        return sorted(str(entry.getPath().getName()) for entry in self._filesystem.listStatus(path))

    def read_text(self, name: str) -> str:
        """Return the content of a file."""
        with closing(self._filesystem.open(self._child_path(name))) as stream:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()

    def write_text(self, name: str, text: str) -> None:
        """Create a file atomically; an existing one is an error."""
        target = self._child_path(name)
        temporary = self._child_path(f"{os.path.dirname(name)}/.{os.path.basename(name)}.{os.urandom(4).hex()}")
        with closing(self._filesystem.create(temporary, False)) as stream:
            stream.write(bytearray(text.encode()))
        if self._filesystem.exists(target) or not self._filesystem.rename(temporary, target):
            self._filesystem.delete(temporary, False)
            raise InvalidInputError(
                f"checkpoint: must be used by one job, got the existing {self.uri}/{name}. Stop the other job."
            )

    def upload(self, local: str | os.PathLike[str], name: str) -> None:
        """Copy a file of this machine, replacing an existing one."""
        self._filesystem.mkdirs(self._child_path(os.path.dirname(name)))
        self._filesystem.copyFromLocalFile(False, True, self._local_path(local), self._child_path(name))

    def download(self, name: str, local: str | os.PathLike[str]) -> None:
        """Copy a file to this machine."""
        self._filesystem.copyToLocalFile(False, self._child_path(name), self._local_path(local), True)

    def _child_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def _local_path(self, local: str | os.PathLike[str]) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path("file:" + os.path.abspath(local))


ReadableDirectory: TypeAlias = LocalDirectory | RemoteDirectory
SCHEME_PATTERN = re.compile(r"([A-Za-z][\w+.-]*):")
FILE_SCHEME_PATTERN = re.compile(r"file:(?://[^/]*)?")
# Variables that can set another default file system.
HADOOP_CONFIG_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")


def get_scheme(uri: str) -> str:
    """Return the scheme of a URI, "" of a path.

    >>> get_scheme("hdfs:/x"), get_scheme("S3A://bucket/x"), get_scheme("/x/10:00.csv"), get_scheme("state")
    ('hdfs', 's3a', '', '')
    """
    match = SCHEME_PATTERN.match(uri)
    return match[1].lower() if match else ""


def to_local_path(uri: str) -> str | None:
    """Return the path on this machine; None for a URI of another file system.

    >>> to_local_path("file:/x/y"), to_local_path("file:///x/y"), to_local_path("x/y"), to_local_path("hdfs:/x")
    ('/x/y', '/x/y', 'x/y', None)
    """
    scheme = get_scheme(uri)
    return uri if not scheme else FILE_SCHEME_PATTERN.sub("", uri, count=1) if scheme == "file" else None


def to_absolute_uri(uri: str) -> str:
    """Return the URI with an absolute path, as Spark may run in another folder.

    >>> to_absolute_uri("hdfs:/x"), to_absolute_uri("file:/x")
    ('hdfs:/x', 'file:/x')
    """
    if get_scheme(uri) == "file":
        return "file:" + os.path.abspath(FILE_SCHEME_PATTERN.sub("", uri, count=1))
    return uri if get_scheme(uri) else os.path.abspath(uri)


def may_be_remote(uri: str, options: Mapping[str, Any]) -> bool:
    """Return whether a URI may be on another machine, by default or scheme."""
    if get_scheme(uri):
        return to_local_path(uri) is None
    has_default_filesystem = any("fs.defaultfs" in setting.lower() for setting in options.get("conf") or ())
    return (
        has_default_filesystem
        or not options["master"].startswith("local")
        or any(os.environ.get(name) for name in HADOOP_CONFIG_VARIABLES)
    )
