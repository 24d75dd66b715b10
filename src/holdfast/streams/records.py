"""JSON records as points: lines of a file, or what messages carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.fleet.keys import Texts, is_writable
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, understand
from holdfast.streams.refusals import Refusals
from holdfast.streams.times import ZONED, as_time, as_times

ENOUGH = 100  # records to look at before deciding what the columns are
VALUE = "value"  # the name of a number that has none
LONGEST = 1 << 20  # bytes of a record
NOT_JSON, NOT_UTF8, TOO_LONG = "not JSON", "not UTF-8", f"longer than {LONGEST:,} bytes"
NO_RECORD, NO_KEY, NO_TIME = "not a record of numbers", "no key", "no time, or not one like the others"
SUBJECTS = ("topic", "subject")  # names that stand for where a message came from, if its records have no such column


class RecordReader:
    """Makes batches of JSON: objects {"time": …, "a": 1.5}, lists of them, lists of numbers, or plain numbers.

    A payload may hold several records: a list of objects or of lists, or several lines. What the columns are is decided
    by the first records, unless `columns` says it already.
    """

    def __init__(self, wanted: Wanted, columns: Columns | None = None) -> None:
        self.wanted, self.columns = wanted, columns

    def batch(self, payloads: Sequence[bytes], position: Any, subjects: Sequence[str] | None = None) -> Batch:
        """The points in some payloads. subjects: where each came from, which can be the key."""
        records: list[tuple[dict[str, Any] | str, bytes]] = []
        for i, payload in enumerate(payloads):
            for record in self._records(payload):
                if subjects is not None and isinstance(record, dict):
                    for name in SUBJECTS:
                        record.setdefault(name, subjects[i])
                records.append((record, payload))
        if self.columns is None and (sample := [record for record, _ in records if isinstance(record, dict)]):
            self._decide(sample[:ENOUGH])
        return self._points(self.columns or Columns((VALUE,)), records, position)

    def _records(self, payload: bytes) -> Iterator[dict[str, Any] | str]:
        """The records in a payload, or in place of one the reason why it is none."""
        if len(payload) > LONGEST:
            yield TOO_LONG
            return
        try:
            found = json.loads(payload)
        except UnicodeDecodeError:
            yield NOT_UTF8
        except RecursionError:
            yield NOT_JSON
        except ValueError:
            lines = [line for line in payload.splitlines() if line.strip()]
            if len(lines) < 2:
                yield NOT_JSON
            for line in lines if len(lines) > 1 else ():
                yield from self._records(line)
        else:
            several = isinstance(found, list) and any(isinstance(one, dict | list) for one in found)
            for one in found if several else [found]:
                yield _as_record(one)

    def _decide(self, sample: list[dict[str, Any]]) -> None:
        """What the columns are; where a message came from is one only if it is asked for."""
        asked = self.wanted.key
        plain = [
            {k: v for k, v in record.items() if (k not in SUBJECTS or k == asked) and is_writable(k)}
            for record in sample
        ]
        if asked in SUBJECTS and not any(asked in record for record in plain):
            raise BadInputError(f"there is no column {asked!r}: only messages of a broker come from one")
        found = understand(plain, self.wanted)
        self.columns = replace(found, hints=())

    def _points(self, columns: Columns, records: Sequence[tuple[dict[str, Any] | str, bytes]], position: Any) -> Batch:
        refused = Refusals()
        values: list[list[float]] = []
        places: list[int] = []
        keys: list[str] = []
        times: list[Any] = []
        names, key, time, kind = columns.values, columns.key, columns.time, columns.time_kind
        for place, (record, payload) in enumerate(records):
            point = record if isinstance(record, str) else _numbers(record, names)
            if isinstance(record, str) or isinstance(point, str):
                refused.add(str(point), place, payload)
                continue
            if key is not None:
                told = record.get(key)
                if not (isinstance(told, str) and told and is_writable(told)) and type(told) is not int:
                    refused.add(NO_KEY, place, payload)
                    continue
                keys.append(str(told))
            if time is not None and kind is not None:
                moment = as_time(record.get(time), kind)
                if moment is None:
                    refused.add(NO_TIME, place, payload)
                    if key is not None:
                        keys.pop()
                    continue
                times.append(moment)
            values.append(point)
            places.append(place)
        return Batch(
            np.array(values, np.float64).reshape(len(values), len(names)),
            position,
            names,
            None if key is None else Texts(keys),
            None if time is None or kind is None else as_times(times, kind),
            n_records=len(records),
            places=np.array(places, np.int64),
            refused=refused,
            zoned=kind == ZONED,
        )


def _as_record(found: Any) -> dict[str, Any] | str:
    """An object as it is; a number or a list of numbers with names of our own."""
    if isinstance(found, dict):
        return found
    if isinstance(found, list) and found:
        return {VALUE: found[0]} if len(found) == 1 else {f"{VALUE}_{i}": one for i, one in enumerate(found)}
    if isinstance(found, int | float) and not isinstance(found, bool):
        return {VALUE: found}
    return NO_RECORD


def _numbers(record: dict[str, Any], names: Sequence[str]) -> list[float] | str:
    """The values of a record, None being missing; or why they are none."""
    point = []
    for name in names:
        try:
            value = record[name]
        except KeyError:
            return f"no column {name!r}"
        kind = type(value)
        if kind is float:
            point.append(value)
        elif kind is int:
            try:
                point.append(float(value))
            except OverflowError:
                point.append(np.inf)
        elif value is None:
            point.append(np.nan)
        else:
            return f"{name!r} is not a number"
    return point
