"""Which addresses are of this machine, and which Spark alone can reach."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

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
