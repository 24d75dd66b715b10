"""A file that was dropped on the page, read as `holdfast detect` reads it."""

from __future__ import annotations

import threading
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.scheme.state import Vector
from holdfast.server.errors import Refused
from holdfast.server.explorer.looked_at import LookedAt
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted
from holdfast.streams.lateness import Lateness
from holdfast.streams.peeked import Peeked
from holdfast.streams.places import file_at
from holdfast.streams.refusals import Refusals
from holdfast.streams.results import texts_of
from holdfast.streams.times import told as as_told

MOST = 200_000  # values that are looked at
SAY = ", say --key "  # in hints for the command; the page has a choice for it
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".pq")


def read_file(content: bytes, name: str, by: str | None = None) -> LookedAt:
    """What is in a file of this name; what was understood, left out, refused and cut off is told with it.

    by: the column whose values tell its streams apart; None to find it out.
    """
    shown = PurePath(name.replace("\\", "/")).name or "data.csv"
    if not content.strip():
        raise Refused("unreadable", f"{shown} is empty")
    with TemporaryDirectory(prefix="holdfast") as folder:
        path = Path(folder) / f"data{_suffix(shown)}"
        path.write_bytes(content)
        try:
            return _read(path, shown, by)
        except (BadInputError, ValueError, OSError) as error:  # pyarrow's errors are of the latter kinds
            words = str(error).replace(str(path), shown)
            raise Refused("unreadable", words if shown in words else f"{shown}: {words}") from None


def _suffix(name: str) -> str:
    """The end of a name, by which readers go: .csv, .csv.gz; .csv for names that do not tell."""
    ends = [one.lower() for one in PurePath(name).suffixes]
    packed = ends[-1:] == [".gz"]
    known = [one for one in ends[:-1] if one in SUFFIXES] if packed else [one for one in ends[-1:] if one in SUFFIXES]
    return "".join(known[-1:] or [".txt"]) + ".gz" * packed


def _read(path: Path, name: str, by: str | None) -> LookedAt:
    peeked = Peeked(file_at(path, Wanted(key=by)))
    found = peeked.look(threading.Event())
    if not found or peeked.columns is None:
        first = next((one for batch in peeked.read() for one in batch.refused.first), None)
        why = "" if first is None else f" ({first})"
        raise Refused("unreadable", f"{name}: there is not one record that can be read{why}")
    columns = peeked.columns
    most = max(MOST // len(columns.values), 1)
    taken, told = _take(peeked, most)
    told |= {"columns": columns.values, "time": columns.time, "time_kind": columns.time_kind, "key": columns.key}
    told |= {"left_out": columns.left_out, "hints": _hints(columns)}
    told |= {"by": by, "may_be_keys": [one.split(SAY)[1] for one in columns.hints if SAY in one]}
    keys = None
    if columns.key is not None:
        listed = [key for batch in taken for key in (texts_of(batch.keys) if batch.keys is not None else ())]
        keys = np.array(["" if key is None else str(key) for key in listed], object)
    values: Vector = np.concatenate([batch.values for batch in taken])
    return LookedAt(name, columns.values, values, _times(taken), keys, told=told)


def _hints(columns: Columns) -> list[str]:
    """What the user may want to know; keys are chosen on the page, not by an option."""
    hints = [one for one in columns.hints if SAY not in one]
    if any("\ufffd" in name for name in (*columns.values, *columns.left_out)):
        hints.append(
            "This file is not UTF-8 (perhaps Latin-1 or Windows-1252): letters that could not be read are shown as "
            "\ufffd. The numbers are not touched by it. Saved as UTF-8 it has its names back."
        )
    return hints


def _take(peeked: Peeked, most: int) -> tuple[list[Batch], dict[str, Any]]:
    """So many points, without those that are late, as the runner takes them; and what there is to tell."""
    sieve, refused = Lateness(), Refusals()
    n = late = records = 0
    cut = False
    taken: list[Batch] = []
    for batch in peeked.read():
        refused.join(batch.refused, records)
        records += batch.n_records
        if n >= most and len(batch):
            cut = True
            break
        kept, n_late, n_repeated = sieve.sift(batch)
        late += n_late + n_repeated
        if len(kept) > most - n:
            kept, cut = kept.only(np.arange(len(kept)) < most - n), True
        n += len(kept)
        if len(kept):
            taken.append(kept)
        if cut:
            break
    peeked.close()
    counts = {"refused": dict(refused.counts), "first_refused": [str(one) for one in refused.first], "late": late}
    return taken, counts | {"cut": cut, "most_values": MOST}


def _times(batches: list[Batch]) -> list[Any] | None:
    """The times of all points as they are written; None if some have none."""
    if any(batch.times is None for batch in batches):
        return None
    return [time for batch in batches if batch.times is not None for time in as_told(batch.times, batch.zoned)]
