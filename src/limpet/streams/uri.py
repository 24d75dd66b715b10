"""Open sources and sinks by path or URL; entry points define other schemes."""

from __future__ import annotations

import os
import re
from functools import partial
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from limpet._format import redact_url
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.streams.formats import READ_BLOCK_BYTES
from limpet.streams.results import ALARMS_TABLE
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink
from limpet.streams.sinks.files import CsvFile, JsonLinesFile
from limpet.streams.sinks.sqlite import SqliteSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.sources.base import BaseSource
from limpet.streams.sources.directory import DirectorySource
from limpet.streams.sources.file import FileSource, StdinSource

SOURCE_GROUP, SINK_GROUP = "limpet.sources", "limpet.sinks"  # entry points: scheme = module:factory
BUILT_IN_FACTORIES = {
    SOURCE_GROUP: {
        "nats": "limpet.streams.brokers.nats:make_source",
        "mqtt": "limpet.streams.brokers.mqtt:make_source",
        "mqtts": "limpet.streams.brokers.mqtt:make_source",
        "kafka": "limpet.streams.brokers.kafka:make_source",
    },
    SINK_GROUP: {
        "nats": "limpet.streams.brokers.nats:make_sink",
        "mqtt": "limpet.streams.brokers.mqtt:make_sink",
        "mqtts": "limpet.streams.brokers.mqtt:make_sink",
        "kafka": "limpet.streams.brokers.kafka:make_sink",
        "http": "limpet.streams.sinks.webhook:make_sink",
        "https": "limpet.streams.sinks.webhook:make_sink",
    },
}
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
PARQUET_SUFFIXES = (".parquet", ".pq")


def open_source(
    uri: str | os.PathLike[str],
    *,
    columns: Any = None,
    key: str | None = None,
    time: str | None = None,
    follow: bool | None = None,
    input_format: str | None = None,
) -> BaseSource:
    """Open the source at a path or URL.

    Parameters
    ----------
    uri : str or path
        A file of CSV (.csv, .tsv, .txt), of JSON lines (.jsonl, .ndjson), either of them compressed (.gz), or of
        Parquet; "-" for standard input; a folder into which files are moved; nats://host:4222/subject,
        mqtt://host/topic, kafka://host:9092/topic; a URL whose scheme is an entry point of the group `limpet.sources`.
    columns : str or sequence of str, optional
        Columns of the values; by default inferred, as key and time are.
    key : str, optional
        Column of the key; "none": the records have none.
    time : str, optional
        Column of the time; "none": the records have none.
    follow : bool, optional
        Whether to wait for more data at the end; by default for brokers, folders and standard input.
    input_format : {"csv", "json"}, optional
        Format of a file or of standard input; by default inferred.

    Returns
    -------
    BaseSource

    Raises
    ------
    InvalidInputError
        If the path does not exist or the scheme is unknown.
    """
    names = (columns,) if isinstance(columns, str) else columns
    spec, text = ColumnSpec(None if names is None else tuple(names), key, time), os.fspath(uri)
    if text == "-":
        return StdinSource(spec, input_format=input_format)
    path = local_path(text)
    if path is None or _get_scheme(text) == "sqlite":
        source: BaseSource = _load_factory(SOURCE_GROUP, text)(text, columns=spec, follow=follow is not False)
        return source
    if path.is_dir():
        open_file = partial(open_file_source, input_format=input_format)
        return DirectorySource(path, open_file, spec, follow=follow is not False)
    if path.is_fifo() or path.is_char_device():
        return StdinSource(spec, input_format=input_format, path=path, follow=bool(follow))
    if not path.exists():
        raise InvalidInputError(f"source: must be an existing file, got {path}.")
    return open_file_source(path, spec, input_format, follow=bool(follow))


def open_file_source(
    path: Path,
    spec: ColumnSpec,
    input_format: str | None = None,
    follow: bool = False,
    block_bytes: int = READ_BLOCK_BYTES,
) -> BaseSource:
    """Open a file as a source, by its suffix."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        from limpet.streams.sources.parquet import ParquetSource

        return ParquetSource(path, spec)
    return FileSource(path, spec, input_format=input_format, follow=follow, block_bytes=block_bytes)


def open_sink(uri: str, table: str = ALARMS_TABLE, *, overwrite: bool = False) -> BaseSink:
    """Open the sink at a path or URL.

    Parameters
    ----------
    uri : str
        A file .jsonl, .csv or .parquet (a folder of parts, if the name ends in /), a database .db or .sqlite; "-"
        for standard output; nats://…, mqtt://…, kafka://…; http(s)://… for a webhook; a URL whose scheme is an entry
        point of the group `limpet.sinks`.
    table : {"alarms", "points"}
        What is written.
    overwrite : bool
        Whether to replace an existing file rather than to append.

    Returns
    -------
    BaseSink
    """
    if uri == "-":
        return StdoutSink(table)
    path = local_path(uri)
    if path is None:
        sink: BaseSink = _load_factory(SINK_GROUP, uri)(uri, table=table)
        return sink
    suffix = path.suffix.lower()
    if _get_scheme(uri) == "sqlite" or suffix in DATABASE_SUFFIXES:
        return SqliteSink(path, table, overwrite=overwrite)
    if suffix in PARQUET_SUFFIXES:
        from limpet.streams.sinks.parquet import ParquetFile, ParquetParts

        return ParquetParts(path, table) if uri.endswith("/") or not overwrite else ParquetFile(path, table)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return JsonLinesFile(path, table, overwrite=overwrite)
    if suffix == ".csv":
        return CsvFile(path, table, overwrite=overwrite)
    raise InvalidInputError(f"{path}: the suffix must be .jsonl, .csv, .parquet or .db, got {suffix!r}.")


def local_path(uri: str) -> Path | None:
    """Return the path of a file or folder, None for any other URI.

    >>> local_path("sqlite:a/b"), local_path("file:///a/b"), local_path("nats://host/a"), local_path("-")
    (PosixPath('a/b'), PosixPath('/a/b'), None, None)
    """
    scheme = _get_scheme(uri)
    if uri == "-" or scheme not in ("", "file", "sqlite"):
        return None
    return Path(uri.partition(":")[2].removeprefix("//") if scheme else uri)


def identify_source(uri: str) -> str:
    """Return the name by which a resumed run recognizes its source, without login.

    Options of a URL may select the data, and may be secret: their digest is part of the name. The brokers of this
    package have what selects the data in their positions.

    >>> identify_source("nats://me:secret@host:4222/a?x=y"), identify_source("table://db/readings?where=a")
    ('nats://host:4222/a', 'table://db/readings?09ec0a46')
    """
    path = local_path(uri)
    if path is not None:
        return str(path.resolve())
    query = "" if _get_scheme(uri) in BUILT_IN_FACTORIES[SOURCE_GROUP] else uri.partition("?")[2]
    return redact_url(uri) + (f"?{sha256(query.encode()).hexdigest()[:8]}" if query else "")


def _load_factory(group: str, uri: str) -> Any:
    scheme, built_in = _get_scheme(uri), BUILT_IN_FACTORIES[group]
    if scheme in built_in:
        return EntryPoint(scheme, built_in[scheme], group).load()
    registered = {entry_point.name: entry_point for entry_point in entry_points(group=group)}
    if scheme not in registered:
        kind, stdio = ("source", "standard input") if group == SOURCE_GROUP else ("sink", "standard output")
        schemes = ", ".join(f"{name}://" for name in sorted({*built_in, *registered}))
        raise InvalidInputError(
            f"{kind}: unknown scheme {scheme}:// in {redact_url(uri)}. Known are {schemes}, paths, and - for {stdio}."
        )
    try:
        return registered[scheme].load()
    except MissingExtraError:
        raise
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"{group}: the entry point {scheme} = {registered[scheme].value} cannot be loaded: {error}."
        ) from error


def _get_scheme(text: str) -> str:
    """Return the scheme of a URI, "" for paths, those with a drive letter too."""
    before, colon, after = text.partition(":")
    letters = re.sub(r"[+.-]", "", before) if after.startswith("//") else before
    return before.lower() if colon and len(before) > 1 and letters.isalnum() else ""
