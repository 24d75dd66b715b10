"""A file that was dropped on the page, read as `limpet detect` reads it."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.server.errors import ApiError
from limpet.streams.batch import Batch
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.rejects import RejectLog
from limpet.streams.results import to_str_list
from limpet.streams.schema import ColumnSpec, Schema
from limpet.streams.schema_probe import ProbedSource
from limpet.streams.timestamps import format_times as as_told
from limpet.streams.uri import open_file_source

# Data that is looked at: a file that was read, or a built-in stream.

MAX_COLUMNS = 16  # variables that are learnt at once, at most


@dataclass(frozen=True, eq=False)
class ExplorerDataset:
    """Points in the order in which they came.

    name: of the file, or of the built-in stream. values: (n, d), NaN where one is missing.
    times: as they are told, None if there are none. keys: of which stream each point is, None if there is one stream.
    means: (n, K, d), where the truth is known. change_points: where they are. told: what was understood of a file.
    suggested: settings that suit it. lines: Python that makes it, for a built-in stream.
    """

    name: str
    names: tuple[str, ...]
    values: Vector
    times: list[Any] | None = None
    keys: npt.NDArray[np.object_] | None = None
    means: Vector | None = None
    change_points: list[int] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    suggested: dict[str, Any] = field(default_factory=dict)
    source_code: str | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes it takes, about."""
        times = 0 if self.times is None else 80 * len(self.times)
        keys = 0 if self.keys is None else 16 * len(self.keys)
        return self.values.nbytes + times + keys + (0 if self.means is None else self.means.nbytes) + 4096

    @cached_property
    def content_hash(self) -> str:
        """The same for the same points of the same variables at the same times."""
        header = repr((self.names, None if self.times is None else (self.times[0], self.times[-1])))
        return hashlib.sha256(header.encode("utf-8", "replace") + self.values.tobytes()).hexdigest()

    @cached_property
    def key_counts(self) -> list[dict[str, Any]]:
        """The keys with their numbers of points, in the order in which they first came."""
        counts: dict[str, int] = {}
        for key in () if self.keys is None else self.keys.tolist():
            counts[key] = counts.get(key, 0) + 1
        return [{"key": key, "rows": n} for key, n in counts.items()]

    def select(self, key: str | None, columns: list[str] | None) -> ExplorerDataset:
        """One of its streams, some of its variables."""
        rows: Any = slice(None)
        if self.keys is not None:
            key = self.key_counts[0]["key"] if key is None else key
            rows = np.flatnonzero(self.keys == key)
            if not len(rows):
                raise ApiError("unknown_key", f"there is no stream {key!r} in {self.name}")
        elif key is not None:
            raise ApiError("unknown_key", f"{self.name} is one stream: it has no keys")
        unknown = [column for column in columns or () if column not in self.names]
        if unknown:
            raise ApiError("unknown_column", f"there is no column {', '.join(map(repr, unknown))} in {self.name}")
        names = tuple(dict.fromkeys(columns)) if columns else self.names
        if len(names) > MAX_COLUMNS:
            raise ApiError(
                "too_many_columns", f"at most {MAX_COLUMNS} columns are learnt together here, got {len(names)}"
            )
        column_index = [self.names.index(column) for column in names]
        return ExplorerDataset(
            self.name,
            names,
            np.ascontiguousarray(self.values[rows][:, column_index]),
            self._select_times(rows),
            None,
            None if self.means is None else np.ascontiguousarray(self.means[:, :, column_index]),
            self.change_points,
            self.metadata,
            self.suggested,
            self.source_code,
        )

    def _select_times(self, rows: Any) -> list[Any] | None:
        if self.times is None or isinstance(rows, slice):
            return self.times
        return [self.times[row] for row in rows.tolist()]


MAX_VALUES = 200_000  # values that are looked at
KEY_HINT = ", say --key "  # in hints for the command; the page has a choice for it
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".pq")


def read_file(content: bytes, name: str, by: str | None = None) -> ExplorerDataset:
    """What is in a file of this name; what was understood, left out, refused and cut off is told with it.

    by: the column whose values tell its streams apart; None to find it out.
    """
    display_name = PurePath(name.replace("\\", "/")).name or "data.csv"
    if not content.strip():
        raise ApiError("unreadable", f"{display_name} is empty")
    with TemporaryDirectory(prefix="limpet") as folder:
        path = Path(folder) / f"data{_get_suffix(display_name)}"
        path.write_bytes(content)
        try:
            return _read_dataset(path, display_name, by)
        except (InvalidInputError, ValueError, OSError) as error:  # pyarrow's errors are of the latter kinds
            message = str(error).replace(str(path), display_name)
            raise ApiError("unreadable", message if display_name in message else f"{display_name}: {message}") from None


def _get_suffix(name: str) -> str:
    """The end of a name, by which readers go: .csv, .csv.gz; .csv for names that do not tell."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    is_gzipped = suffixes[-1:] == [".gz"]
    recognized = (
        [suffix for suffix in suffixes[:-1] if suffix in SUFFIXES]
        if is_gzipped
        else [suffix for suffix in suffixes[-1:] if suffix in SUFFIXES]
    )
    return "".join(recognized[-1:] or [".txt"]) + ".gz" * is_gzipped


def _read_dataset(path: Path, name: str, by: str | None) -> ExplorerDataset:
    source = ProbedSource(open_file_source(path, ColumnSpec(key=by)))
    has_schema = source.wait_for_schema(threading.Event())
    if not has_schema or source.columns is None:
        first = next((item for batch in source.read() for item in batch.rejects.first), None)
        reason = "" if first is None else f" ({first})"
        raise ApiError("unreadable", f"{name}: there is not one record that can be read{reason}")
    columns = source.columns
    max_rows = max(MAX_VALUES // len(columns.values), 1)
    batches, report = _read_batches(source, max_rows)
    report |= {"columns": columns.values, "time": columns.time, "time_kind": columns.time_kind, "key": columns.key}
    report |= {"left_out": columns.ignored, "hints": _hints(columns)}
    report |= {"by": by, "may_be_keys": [item.split(KEY_HINT)[1] for item in columns.hints if KEY_HINT in item]}
    keys = None
    if columns.key is not None:
        key_strings = [key for batch in batches for key in (to_str_list(batch.keys) if batch.keys is not None else ())]
        keys = np.array(["" if key is None else str(key) for key in key_strings], object)
    values: Vector = np.concatenate([batch.values for batch in batches])
    return ExplorerDataset(name, columns.values, values, _collect_times(batches), keys, metadata=report)


def _hints(columns: Schema) -> list[str]:
    """What the user may want to know; keys are chosen on the page, not by an option."""
    hints = [hint for hint in columns.hints if KEY_HINT not in hint]
    if any("\ufffd" in name for name in (*columns.values, *columns.ignored)):
        hints.append(
            "This file is not UTF-8 (perhaps Latin-1 or Windows-1252): letters that could not be read are shown as "
            "\ufffd. The numbers are not touched by it. Saved as UTF-8 it has its names back."
        )
    return hints


def _read_batches(source: ProbedSource, max_rows: int) -> tuple[list[Batch], dict[str, Any]]:
    """So many points, without those that are late, as the runner takes them; and what there is to tell."""
    time_filter, rejected = EventTimeFilter(), RejectLog()
    n_rows = n_skipped = n_records = 0
    is_truncated = False
    batches: list[Batch] = []
    for batch in source.read():
        rejected.merge(batch.rejects, n_records)
        n_records += batch.n_records
        if n_rows >= max_rows and len(batch):
            is_truncated = True
            break
        accepted, n_late, n_repeated = time_filter.filter(batch)
        n_skipped += n_late + n_repeated
        if len(accepted) > max_rows - n_rows:
            accepted, is_truncated = accepted.filter(np.arange(len(accepted)) < max_rows - n_rows), True
        n_rows += len(accepted)
        if len(accepted):
            batches.append(accepted)
        if is_truncated:
            break
    source.close()
    counts = {
        "refused": dict(rejected.counts),
        "first_refused": [str(record) for record in rejected.first],
        "late": n_skipped,
    }
    return batches, counts | {"cut": is_truncated, "most_values": MAX_VALUES}


def _collect_times(batches: list[Batch]) -> list[Any] | None:
    """The times of all points as they are written; None if some have none."""
    if any(batch.times is None for batch in batches):
        return None
    return [time for batch in batches if batch.times is not None for time in as_told(batch.times, batch.tz_aware)]
