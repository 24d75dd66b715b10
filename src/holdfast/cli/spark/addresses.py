"""Which addresses are of this machine, and which Spark alone can reach."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

SCHEME = re.compile(r"([A-Za-z][\w+.-]*):")
FILE = re.compile(r"file:(?://[^/]*)?")
SETTLED = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")  # where a default file system is set


def scheme_of(address: str) -> str:
    """Of an address, such as s3a://bucket/x or hdfs:/x; of a plain path none.

    >>> scheme_of("hdfs:/x"), scheme_of("S3A://bucket/x"), scheme_of("/x/10:00.csv"), scheme_of("state")
    ('hdfs', 's3a', '', '')
    """
    found = SCHEME.match(address)
    return found[1].lower() if found else ""


def local_path(address: str) -> str | None:
    """The path on this machine that an address means; None for one of elsewhere.

    >>> local_path("file:/x/y"), local_path("file:///x/y"), local_path("x/y"), local_path("hdfs:/x")
    ('/x/y', '/x/y', 'x/y', None)
    """
    scheme = scheme_of(address)
    return address if not scheme else FILE.sub("", address, count=1) if scheme == "file" else None


def whole(address: str) -> str:
    """An address as Spark finds it, which may have been begun in another folder.

    >>> whole("hdfs:/x"), whole("file:/x")
    ('hdfs:/x', 'file:/x')
    """
    if scheme_of(address) == "file":
        return "file:" + os.path.abspath(FILE.sub("", address, count=1))
    return address if scheme_of(address) else os.path.abspath(address)


def may_be_elsewhere(address: str, values: Mapping[str, Any]) -> bool:
    """Whether a path that is not on this machine may be one of Spark's: its file system may be another by default."""
    if scheme_of(address):
        return local_path(address) is None
    told = any("fs.defaultfs" in one.lower() for one in values.get("conf") or ())
    return told or not values["master"].startswith("local") or any(os.environ.get(name) for name in SETTLED)
