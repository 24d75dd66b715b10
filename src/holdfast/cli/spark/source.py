"""What is scored, by its name: folders of files, Kafka, a socket."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.cli.spark.addresses import local_path, may_be_elsewhere, scheme_of
from holdfast.errors import BadInputError

ENDINGS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".deflate", ".snappy")
NO_SCHEMA = "say what columns there are, such as --schema 'sensor string, ts timestamp, flow double'"
USUAL = {
    "csv": {"header": "true", "enforceSchema": "false", "escape": '"'},
    "json": {"inferTimestamp": "true"},
    "kafka": {"startingOffsets": "earliest"},
}


@dataclass(frozen=True)
class Place:
    """A source by its name. form: as Spark calls it. address: a path, host:port, or host:port and a topic."""

    form: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_files: bool = True

    @property
    def told(self) -> str:
        """In words."""
        return f"{self.address}, {self.form}" if self.is_files else f"{self.form}://{self.address}"


def place_of(source: str, values: Mapping[str, Any], options: Mapping[str, str]) -> Place:
    """The source of this name, with its options; what is wrong with it is told before Spark is begun."""
    scheme = scheme_of(source)
    if scheme in ("kafka", "socket"):
        place = _kafka(source) if scheme == "kafka" else _socket(source)
        if not values["schema"]:
            raise BadInputError(f"{scheme}:// carries JSON, of which Spark wants to know the columns: {NO_SCHEMA}")
        for name in ("files_per_batch", "input_format"):
            if values[name] is not None:
                raise BadInputError(f"--{name.replace('_', '-')} is for files")
        if scheme == "socket" and (values["batch"] or values["once"]):
            raise BadInputError("a socket has no end: --once and --batch are for files and Kafka")
        if scheme == "socket" and values["checkpoint"]:
            raise BadInputError("a socket cannot be read again: there is nothing that a --checkpoint could go on from")
    else:
        place = _files(source, values)
    return replace(place, options={**USUAL.get(place.form, {}), **place.options, **options})


def _kafka(source: str) -> Place:
    parts = urlsplit(source)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "@" in parts.netloc:
        raise BadInputError("expected kafka://host:9092/topic; names and passwords go into --option kafka.…=…")
    hosts = ",".join(one if ":" in one else f"{one}:9092" for one in parts.netloc.split(","))
    return Place("kafka", f"{hosts}/{topic}", {"kafka.bootstrap.servers": hosts, "subscribe": topic}, is_files=False)


def _socket(source: str) -> Place:
    parts = urlsplit(source)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise BadInputError(f"expected socket://host:port, got {source}")
    return Place("socket", f"{host}:{port}", {"host": host, "port": str(port)}, is_files=False)


def _files(source: str, values: Mapping[str, Any]) -> Place:
    form, options = values["input_format"], {}
    path = local_path(source)
    if path is None or (not glob.glob(path) and may_be_elsewhere(source, values)):
        form = form or _form_of(source)
        if form is None:
            raise BadInputError(f"{source}: say of which format its files are, with --input-format")
        return Place(form, source)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise BadInputError(f"there is no folder {path}")
    found = files_in(path)
    if not found and not values["schema"]:
        raise BadInputError(f"there are no files in {path} to learn the columns from: {NO_SCHEMA}")
    forms = sorted({one for file in found if (one := _form_of(file))} or {one for one in [_form_of(path)] if one})
    if form is None and len(forms) != 1:
        what = f"holds {' and '.join(forms)}" if forms else "does not tell by names of which format its files are"
        raise BadInputError(f"{path} {what}: say which with --input-format")
    form = form or forms[0]
    if form == "csv" and found and all(".tsv" in Path(file).suffixes for file in found):
        options["sep"] = "\t"
    return Place(form, source, options)


def files_in(path: str) -> list[str]:
    """The files of a folder, of its folders of the form name=value, or of a pattern: those that Spark would read."""
    found: list[str] = []
    for one in sorted(glob.glob(path)):
        if os.path.isdir(one):
            for name in sorted(os.listdir(one)):
                inside = os.path.join(one, name)
                if not name.startswith(("_", ".")):
                    found += files_in(glob.escape(inside)) if "=" in name or not os.path.isdir(inside) else []
        else:
            found.append(one)
    return found


def _form_of(name: str) -> str | None:
    """The format that the name of a file tells."""
    stem, ending = os.path.splitext(name.lower())
    return ENDINGS.get(os.path.splitext(stem)[1] if ending in PACKED else ending)
