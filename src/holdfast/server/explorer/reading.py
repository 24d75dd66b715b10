"""A file that was dropped on the page, read as `holdfast detect` reads it."""

from __future__ import annotations

import threading
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.scheme.state import Vector
from holdfast.server.errors import ApiError
from holdfast.server.explorer.looked_at import ExplorerDataset
from holdfast.streams.batch import Batch
from holdfast.streams.columns import ColumnSpec, Schema
from holdfast.streams.lateness import EventTimeFilter
from holdfast.streams.peeked import ProbedSource
from holdfast.streams.places import open_file_source
from holdfast.streams.refusals import RejectLog
from holdfast.streams.results import to_str_list
from holdfast.streams.times import format_times as as_told

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
    with TemporaryDirectory(prefix="holdfast") as folder:
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
