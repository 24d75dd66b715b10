"""What is scored, by its name: folders of files, Kafka, a socket."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.cli.spark.addresses import get_scheme, may_be_remote, to_local_path
from holdfast.errors import InvalidInputError

FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4", ".deflate", ".snappy")
SCHEMA_HINT = "say what columns there are, such as --schema 'sensor string, ts timestamp, flow double'"
DEFAULT_OPTIONS = {
    "csv": {"header": "true", "enforceSchema": "false", "escape": '"'},
    "json": {"inferTimestamp": "true"},
    "kafka": {"startingOffsets": "earliest"},
}


@dataclass(frozen=True)
class SparkSource:
    """A source by its name. form: as Spark calls it. address: a path, host:port, or host:port and a topic."""

    format_name: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_files: bool = True

    @property
    def description(self) -> str:
        """In words."""
        return f"{self.location}, {self.format_name}" if self.is_files else f"{self.format_name}://{self.location}"


def parse_source(source_name: str, values: Mapping[str, Any], options: Mapping[str, str]) -> SparkSource:
    """The source of this name, with its options; what is wrong with it is told before Spark is begun."""
    scheme = get_scheme(source_name)
    if scheme in ("kafka", "socket"):
        source = _parse_kafka(source_name) if scheme == "kafka" else _parse_socket(source_name)
        if not values["schema"]:
            raise InvalidInputError(
                f"{scheme}:// carries JSON, of which Spark wants to know the columns: {SCHEMA_HINT}"
            )
        for name in ("files_per_batch", "input_format"):
            if values[name] is not None:
                raise InvalidInputError(f"--{name.replace('_', '-')} is for files")
        if scheme == "socket" and (values["batch"] or values["once"]):
            raise InvalidInputError("a socket has no end: --once and --batch are for files and Kafka")
        if scheme == "socket" and values["checkpoint"]:
            raise InvalidInputError(
                "a socket cannot be read again: there is nothing that a --checkpoint could go on from"
            )
    else:
        source = _parse_files(source_name, values)
    return replace(source, options={**DEFAULT_OPTIONS.get(source.format_name, {}), **source.options, **options})


def _parse_kafka(source_name: str) -> SparkSource:
    parts = urlsplit(source_name)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "@" in parts.netloc:
        raise InvalidInputError("expected kafka://host:9092/topic; names and passwords go into --option kafka.…=…")
    hosts = ",".join(host if ":" in host else f"{host}:9092" for host in parts.netloc.split(","))
    return SparkSource(
        "kafka", f"{hosts}/{topic}", {"kafka.bootstrap.servers": hosts, "subscribe": topic}, is_files=False
    )


def _parse_socket(source_name: str) -> SparkSource:
    parts = urlsplit(source_name)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise InvalidInputError(f"expected socket://host:port, got {source_name}")
    return SparkSource("socket", f"{host}:{port}", {"host": host, "port": str(port)}, is_files=False)


def _parse_files(source_name: str, values: Mapping[str, Any]) -> SparkSource:
    format_name, options = values["input_format"], {}
    path = to_local_path(source_name)
    if path is None or (not glob.glob(path) and may_be_remote(source_name, values)):
        format_name = format_name or _infer_format(source_name)
        if format_name is None:
            raise InvalidInputError(f"{source_name}: say of which format its files are, with --input-format")
        return SparkSource(format_name, source_name)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise InvalidInputError(f"there is no folder {path}")
    files = list_files(path)
    if not files and not values["schema"]:
        raise InvalidInputError(f"there are no files in {path} to learn the columns from: {SCHEMA_HINT}")
    format_names = sorted(
        {candidate for file in files if (candidate := _infer_format(file))}
        or {candidate for candidate in [_infer_format(path)] if candidate}
    )
    if format_name is None and len(format_names) != 1:
        problem = (
            f"holds {' and '.join(format_names)}"
            if format_names
            else "does not tell by names of which format its files are"
        )
        raise InvalidInputError(f"{path} {problem}: say which with --input-format")
    format_name = format_name or format_names[0]
    if format_name == "csv" and files and all(".tsv" in Path(file).suffixes for file in files):
        options["sep"] = "\t"
    return SparkSource(format_name, source_name, options)


def list_files(path: str) -> list[str]:
    """The files of a folder, of its folders of the form name=value, or of a pattern: those that Spark would read."""
    files: list[str] = []
    for entry in sorted(glob.glob(path)):
        if os.path.isdir(entry):
            for name in sorted(os.listdir(entry)):
                child = os.path.join(entry, name)
                if not name.startswith(("_", ".")):
                    files += list_files(glob.escape(child)) if "=" in name or not os.path.isdir(child) else []
        else:
            files.append(entry)
    return files


def _infer_format(name: str) -> str | None:
    """The format that the name of a file tells."""
    stem, suffix = os.path.splitext(name.lower())
    return FORMAT_BY_SUFFIX.get(os.path.splitext(stem)[1] if suffix in COMPRESSION_SUFFIXES else suffix)
