"""Sources and sinks by their names: paths and URLs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from limpet.exceptions import InvalidInputError
from limpet.streams.brokers.url import redact_url
from limpet.streams.formats.lines import READ_BLOCK_BYTES
from limpet.streams.results import ALARMS_TABLE
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink
from limpet.streams.sinks.files import CsvFile, JsonLinesFile
from limpet.streams.sinks.sqlite import SqliteSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.sources.base import Source
from limpet.streams.sources.directory import DirectorySource
from limpet.streams.sources.file import FileSource
from limpet.streams.sources.stdin import StdinSource

BROKER_MODULES = {"nats": "nats", "mqtt": "mqtt", "mqtts": "mqtt", "kafka": "kafka"}
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
PARQUET_SUFFIXES = (".parquet", ".pq")


def open_source(
    uri: str | os.PathLike[str],
    *,
    columns: Any = None,
    key: str | None = None,
    time: str | None = None,
    follow: bool | None = None,
    form: str | None = None,
) -> Source:
    """The source of this name.

    place: a file of separated values (.csv, .tsv, .txt), of JSON lines (.jsonl, .ndjson), either of them packed (.gz),
        or of Parquet; "-" for standard input; a folder that files are dropped into; nats://host:4222/subject,
        mqtt://host/topic, kafka://host:9092/topic.
    columns, key, time: the names of the columns of the values, of the key and of the time. What is not said is found
        out; "none" says that there is none.
    follow: whether to wait for more at the end. By default brokers, folders and standard input are waited for.
    form: of a file or of standard input, "csv" or "json", where its name does not tell.
    """
    spec = ColumnSpec(None if columns is None else _to_column_names(columns), key, time)
    text = os.fspath(uri)
    if text == "-":
        return StdinSource(spec, form=form)
    scheme = _get_scheme(text)
    if scheme in BROKER_MODULES:
        source: Source = _import_broker(scheme).source_of(text, spec, follow is not False)
        return source
    if scheme not in ("", "file"):
        raise InvalidInputError(
            f"{redact(text)}: there is no source {scheme}://; there are {_format_broker_schemes()}, files, folders and -"
        )
    path = local_path(text)
    assert path is not None
    if path.is_dir():
        return DirectorySource(
            path, lambda one, its: open_file_source(one, its, form), spec, follow=follow is not False
        )
    if path.is_fifo() or path.is_char_device():
        return StdinSource(spec, form=form, path=path, follow=bool(follow))
    if not path.exists():
        raise InvalidInputError(f"there is no file {path}")
    return open_file_source(path, spec, form, follow=bool(follow))


def open_file_source(
    path: Path, spec: ColumnSpec, form: str | None = None, follow: bool = False, block_bytes: int = READ_BLOCK_BYTES
) -> Source:
    """The source of a file."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        from limpet.streams.sources.parquet import ParquetSource

        return ParquetSource(path, spec)
    return FileSource(path, spec, form=form, follow=follow, block_bytes=block_bytes)


def open_sink(uri: str, table: str = ALARMS_TABLE, *, overwrite: bool = False) -> BaseSink:
    """The sink of this name, for "alarms" or "points".

    place: a file .jsonl, .csv or .parquet (a folder of parts, if the name ends in /), a database .db or .sqlite,
    "-" for standard output, nats://…, mqtt://…, kafka://…, or http(s)://… to be called for alarms. anew: whether a
    file that is there is written over rather than added to.
    """
    if uri == "-":
        return StdoutSink(table)
    scheme = _get_scheme(uri)
    if scheme in BROKER_MODULES:
        sink: BaseSink = _import_broker(scheme).sink_of(uri, table)
        return sink
    if scheme in ("http", "https"):
        if table != ALARMS_TABLE:
            raise InvalidInputError(f"{redact(uri)}: a web hook is called for alarms, not for every point")
        from limpet.streams.sinks.webhook import WebhookSink

        return WebhookSink(uri)
    if scheme not in ("", "file", "sqlite"):
        raise InvalidInputError(
            f"{redact(uri)}: there is no sink {scheme}://; there are {_format_broker_schemes()}, http, sqlite, files and -"
        )
    path = local_path(uri)
    assert path is not None
    return _open_file_sink(path, table, overwrite, scheme == "sqlite", uri.endswith("/"))


def local_path(uri: str) -> Path | None:
    """The file or folder that a place is; None if it is something else.

    >>> path_at("sqlite:a/b"), path_at("file:///a/b"), path_at("nats://host/a"), path_at("-")
    (PosixPath('a/b'), PosixPath('/a/b'), None, None)
    """
    scheme = _get_scheme(uri)
    if uri == "-" or scheme not in ("", "file", "sqlite"):
        return None
    return Path(uri.partition(":")[2].removeprefix("//") if scheme else uri)


def redact(uri: str) -> str:
    """A place as it may be shown: without logins, options, and what of a web hook may be a secret.

    >>> shown("nats://me:secret@host:4222/a?x=y"), shown("https://hooks.host/services/secret"), shown("what?.csv")
    ('nats://host:4222/a', 'https://hooks.host/…', 'what?.csv')
    """
    if "://" not in uri:
        return uri
    plain = redact_url(uri)
    if uri.lower().startswith(("http://", "https://")):
        scheme, _, rest = plain.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/…"
    return plain


def _open_file_sink(path: Path, table: str, overwrite: bool, database: bool, folder: bool) -> BaseSink:
    suffix = path.suffix.lower()
    if database or suffix in DATABASE_SUFFIXES:
        return SqliteSink(path, table, overwrite=overwrite)
    if suffix in PARQUET_SUFFIXES:
        from limpet.streams.sources.parquet import ParquetFile, ParquetParts

        return ParquetParts(path, table) if folder or not overwrite else ParquetFile(path, table)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return JsonLinesFile(path, table, overwrite=overwrite)
    if suffix == ".csv":
        return CsvFile(path, table, overwrite=overwrite)
    raise InvalidInputError(f"{path}: expected a name that ends in .jsonl, .csv, .parquet or .db")


def _import_broker(scheme: str) -> Any:
    from importlib import import_module

    return import_module(f"limpet.streams.brokers.{BROKER_MODULES[scheme]}")


def _get_scheme(text: str) -> str:
    """What stands before a colon, unless it is a letter of a drive."""
    before, colon, _ = text.partition(":")
    return before.lower() if colon and len(before) > 1 and before.replace("+", "").isalnum() else ""


def _format_broker_schemes() -> str:
    return ", ".join(f"{name}://" for name in ("nats", "mqtt", "kafka"))


def _to_column_names(columns: Any) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
