"""Sources and sinks by their names: paths and URLs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holdfast.errors import BadInputError
from holdfast.streams.brokers.addresses import without_password
from holdfast.streams.columns import Wanted
from holdfast.streams.file_sinks import CsvFile, JsonLinesFile
from holdfast.streams.files import FileSource
from holdfast.streams.folder import Folder
from holdfast.streams.lines import AT_ONCE
from holdfast.streams.sink import Sink
from holdfast.streams.source import Source
from holdfast.streams.sqlite import Sqlite
from holdfast.streams.standard_input import StandardInput
from holdfast.streams.standard_output import StandardOutput
from holdfast.streams.tables import ALARMS

BROKERS = {"nats": "nats", "mqtt": "mqtt", "mqtts": "mqtt", "kafka": "kafka"}
DATABASES = (".db", ".sqlite", ".sqlite3")
PARQUET = (".parquet", ".pq")


def source_at(
    place: str | os.PathLike[str],
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
    wanted = Wanted(None if columns is None else _listed(columns), key, time)
    text = os.fspath(place)
    if text == "-":
        return StandardInput(wanted, form=form)
    scheme = _scheme(text)
    if scheme in BROKERS:
        source: Source = _broker(scheme).source_of(text, wanted, follow is not False)
        return source
    if scheme not in ("", "file"):
        raise BadInputError(
            f"{shown(text)}: there is no source {scheme}://; there are {_known()}, files, folders and -"
        )
    path = path_at(text)
    assert path is not None
    if path.is_dir():
        return Folder(path, lambda one, its: file_at(one, its, form), wanted, follow=follow is not False)
    if path.is_fifo() or path.is_char_device():
        return StandardInput(wanted, form=form, path=path, follow=bool(follow))
    if not path.exists():
        raise BadInputError(f"there is no file {path}")
    return file_at(path, wanted, form, follow=bool(follow))


def file_at(
    path: Path, wanted: Wanted, form: str | None = None, follow: bool = False, at_once: int = AT_ONCE
) -> Source:
    """The source of a file."""
    if path.suffix.lower() in PARQUET:
        from holdfast.streams.parquet import ParquetSource

        return ParquetSource(path, wanted)
    return FileSource(path, wanted, form=form, follow=follow, at_once=at_once)


def sink_at(place: str, what: str = ALARMS, *, anew: bool = False) -> Sink:
    """The sink of this name, for "alarms" or "points".

    place: a file .jsonl, .csv or .parquet (a folder of parts, if the name ends in /), a database .db or .sqlite,
    "-" for standard output, nats://…, mqtt://…, kafka://…, or http(s)://… to be called for alarms. anew: whether a
    file that is there is written over rather than added to.
    """
    if place == "-":
        return StandardOutput(what)
    scheme = _scheme(place)
    if scheme in BROKERS:
        sink: Sink = _broker(scheme).sink_of(place, what)
        return sink
    if scheme in ("http", "https"):
        if what != ALARMS:
            raise BadInputError(f"{shown(place)}: a web hook is called for alarms, not for every point")
        from holdfast.streams.webhook import Webhook

        return Webhook(place)
    if scheme not in ("", "file", "sqlite"):
        raise BadInputError(
            f"{shown(place)}: there is no sink {scheme}://; there are {_known()}, http, sqlite, files and -"
        )
    path = path_at(place)
    assert path is not None
    return _file_sink(path, what, anew, scheme == "sqlite", place.endswith("/"))


def path_at(place: str) -> Path | None:
    """The file or folder that a place is; None if it is something else.

    >>> path_at("sqlite:a/b"), path_at("file:///a/b"), path_at("nats://host/a"), path_at("-")
    (PosixPath('a/b'), PosixPath('/a/b'), None, None)
    """
    scheme = _scheme(place)
    if place == "-" or scheme not in ("", "file", "sqlite"):
        return None
    return Path(place.partition(":")[2].removeprefix("//") if scheme else place)


def shown(place: str) -> str:
    """A place as it may be shown: without logins, options, and what of a web hook may be a secret.

    >>> shown("nats://me:secret@host:4222/a?x=y"), shown("https://hooks.host/services/secret"), shown("what?.csv")
    ('nats://host:4222/a', 'https://hooks.host/…', 'what?.csv')
    """
    if "://" not in place:
        return place
    plain = without_password(place)
    if place.lower().startswith(("http://", "https://")):
        scheme, _, rest = plain.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/…"
    return plain


def _file_sink(path: Path, what: str, anew: bool, database: bool, folder: bool) -> Sink:
    suffix = path.suffix.lower()
    if database or suffix in DATABASES:
        return Sqlite(path, what, anew=anew)
    if suffix in PARQUET:
        from holdfast.streams.parquet import ParquetFile, ParquetParts

        return ParquetParts(path, what) if folder or not anew else ParquetFile(path, what)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return JsonLinesFile(path, what, anew=anew)
    if suffix == ".csv":
        return CsvFile(path, what, anew=anew)
    raise BadInputError(f"{path}: expected a name that ends in .jsonl, .csv, .parquet or .db")


def _broker(scheme: str) -> Any:
    from importlib import import_module

    return import_module(f"holdfast.streams.brokers.{BROKERS[scheme]}")


def _scheme(text: str) -> str:
    """What stands before a colon, unless it is a letter of a drive."""
    before, colon, _ = text.partition(":")
    return before.lower() if colon and len(before) > 1 and before.replace("+", "").isalnum() else ""


def _known() -> str:
    return ", ".join(f"{name}://" for name in ("nats", "mqtt", "kafka"))


def _listed(columns: Any) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
