"""Data of the explorer: uploaded files, read as by `limpet detect`, and examples."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.server.responses import ApiError
from limpet.streams.batch import Batch, InputErrorLog
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.results import to_str_list
from limpet.streams.schema import ColumnSpec, Schema
from limpet.streams.sources.base import ProbedSource
from limpet.streams.timestamps import format_times
from limpet.streams.uri import open_file_source

MAX_COLUMNS = 16  # that are learned together
MAX_VALUES = 200_000  # of a file
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class ExplorerDataset:
    """Points of one or more streams, in order."""

    name: str  # of the file or of the example stream
    names: tuple[str, ...]  # of the variables
    values: Vector  # (n, d), NaN where one is missing
    times: list[Any] | None = None  # in the format of the file
    keys: npt.NDArray[np.object_] | None = None  # the stream of each point; None for a single stream
    means: Vector | None = None  # (n, K, d), the true means of the components, if they are known
    change_points: list[int] = field(default_factory=list)  # the true ones
    metadata: dict[str, Any] = field(default_factory=dict)  # what was inferred about a file
    suggested: dict[str, Any] = field(default_factory=dict)  # settings
    source_code: str | None = None  # Python that makes an example stream

    @property
    def n_bytes(self) -> int:
        """The approximate size in memory."""
        times = 0 if self.times is None else 80 * len(self.times)
        keys = 0 if self.keys is None else 16 * len(self.keys)
        return self.values.nbytes + times + keys + (0 if self.means is None else self.means.nbytes) + 4096

    @cached_property
    def content_hash(self) -> str:
        """A digest of variables, times and values."""
        header = repr((self.names, None if self.times is None else (self.times[0], self.times[-1])))
        return hashlib.sha256(header.encode("utf-8", "replace") + self.values.tobytes()).hexdigest()

    @cached_property
    def key_counts(self) -> list[dict[str, Any]]:
        """The keys with their numbers of points, in order of appearance."""
        counts = Counter(() if self.keys is None else self.keys.tolist())
        return [{"key": key, "rows": n} for key, n in counts.items()]

    def select(self, key: str | None, columns: list[str] | None) -> ExplorerDataset:
        """Return one stream (by default the first) with some of its variables."""
        rows: Any = slice(None)
        if self.keys is not None:
            key = self.key_counts[0]["key"] if key is None else key
            rows = np.flatnonzero(self.keys == key)
            if not len(rows):
                raise ApiError("unknown_key", f"key: {self.name} has no stream {key!r}.")
        elif key is not None:
            raise ApiError("unknown_key", f"key: {self.name} is a single stream without keys.")
        unknown = [column for column in columns or () if column not in self.names]
        if unknown:
            raise ApiError("unknown_column", f"columns: {self.name} has no column {', '.join(map(repr, unknown))}.")
        names = tuple(dict.fromkeys(columns)) if columns else self.names
        if len(names) > MAX_COLUMNS:
            raise ApiError("too_many_columns", f"columns: must be at most {MAX_COLUMNS}, got {len(names)}.")
        column_index = [self.names.index(column) for column in names]
        values = np.ascontiguousarray(self.values[rows][:, column_index])
        times = None if self.times is None else np.array(self.times, object)[rows].tolist()
        means = None if self.means is None else np.ascontiguousarray(self.means[:, :, column_index])
        return replace(self, names=names, values=values, times=times, keys=None, means=means)


def read_file(content: bytes, name: str, key_column: str | None = None) -> ExplorerDataset:
    """Read contents, up to `MAX_VALUES` values, in the format of the name's suffix.

    The metadata has the schema, and what was ignored, malformed, skipped. The column of the key is inferred by default.
    """
    display_name = PurePath(name.replace("\\", "/")).name or "data.csv"
    if not content.strip():
        raise ApiError("unreadable", f"{display_name}: the file is empty.")
    with TemporaryDirectory(prefix="limpet") as folder:
        path = Path(folder) / f"data{_get_suffix(display_name)}"
        path.write_bytes(content)
        try:
            return _read_dataset(path, display_name, key_column)
        except (InvalidInputError, ValueError, OSError) as error:  # the latter two of pyarrow
            message = str(error).replace(str(path), display_name)
            raise ApiError("unreadable", message if display_name in message else f"{display_name}: {message}") from None


def _get_suffix(name: str) -> str:
    """Return the suffix known to readers, .txt by default, with .gz if present."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    is_gzipped = suffixes[-1:] == [".gz"]
    candidates = suffixes[:-1] if is_gzipped else suffixes[-1:]
    recognized = [suffix for suffix in candidates if suffix in SUFFIXES]
    return "".join(recognized[-1:] or [".txt"]) + ".gz" * is_gzipped


def _read_dataset(path: Path, name: str, key_column: str | None) -> ExplorerDataset:
    source = ProbedSource(open_file_source(path, ColumnSpec(key=key_column)))
    has_schema = source.wait_for_schema(threading.Event())
    if not has_schema or source.schema is None:
        first = next((item for batch in source.read() for item in batch.malformed.first), None)
        reason = "" if first is None else f" ({first})"
        raise ApiError("unreadable", f"{name}: no readable record found{reason}.")
    columns = source.schema
    max_rows = max(MAX_VALUES // len(columns.values), 1)
    batches, report = _read_batches(source, max_rows)
    report |= {name: getattr(columns, name) for name in ("time", "time_kind", "key", "ignored", "key_candidates")}
    report |= {"columns": columns.values, "hints": _get_hints(columns), "key_column": key_column}
    keys = None
    if columns.key is not None:
        key_strings = [key for batch in batches for key in (to_str_list(batch.keys) if batch.keys is not None else ())]
        keys = np.array(["" if key is None else str(key) for key in key_strings], object)
    values: Vector = np.concatenate([batch.values for batch in batches])
    return ExplorerDataset(name, columns.values, values, _collect_times(batches), keys, metadata=report)


def _get_hints(columns: Schema) -> list[str]:
    if not any("\ufffd" in name for name in (*columns.values, *columns.ignored)):
        return []
    return [
        "This file is not UTF-8 (perhaps Latin-1 or Windows-1252): unreadable letters are shown as \ufffd. "
        "Numbers are not affected. Save the file as UTF-8 to see all names."
    ]


def _read_batches(source: ProbedSource, max_rows: int) -> tuple[list[Batch], dict[str, Any]]:
    """Read up to max_rows points without late or duplicate ones; return their counts."""
    time_filter, malformed = EventTimeFilter(), InputErrorLog()
    n_rows, n_skipped, n_records, is_truncated = 0, 0, 0, False
    batches: list[Batch] = []
    for batch in source.read():
        malformed.merge(batch.malformed, n_records)
        n_records += batch.n_records
        if n_rows >= max_rows and len(batch):
            is_truncated = True
            break
        accepted, n_late, n_duplicates = time_filter.filter(batch)
        n_skipped += n_late + n_duplicates
        if len(accepted) > max_rows - n_rows:
            accepted, is_truncated = accepted.filter(np.arange(len(accepted)) < max_rows - n_rows), True
        n_rows += len(accepted)
        if len(accepted):
            batches.append(accepted)
        if is_truncated:
            break
    source.close()
    counts = {"malformed": dict(malformed.counts), "first_malformed": [str(record) for record in malformed.first]}
    return batches, counts | {"n_skipped": n_skipped, "is_truncated": is_truncated, "max_values": MAX_VALUES}


def _collect_times(batches: list[Batch]) -> list[Any] | None:
    """Return the times of all points as strings, None if some batch has none."""
    if any(batch.times is None for batch in batches):
        return None
    return [time for batch in batches if batch.times is not None for time in format_times(batch.times, batch.tz_aware)]
