"""Points from JSON records: lines of a file, or payloads of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys, is_valid_utf8
from limpet.streams.batch import Batch, RejectLog
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.timestamps import ZONED_ISO_FORMAT, parse_time, to_time_array

SCHEMA_SAMPLE_RECORDS = 100  # records that the columns are inferred from
DEFAULT_VALUE_NAME = "value"  # of a number without a name
MAX_RECORD_BYTES = 1 << 20
NOT_JSON, NOT_UTF8, RECORD_TOO_LONG = "not JSON", "not UTF-8", f"longer than {MAX_RECORD_BYTES:,} bytes"
NOT_A_RECORD, NO_KEY, NO_TIME = "not a record of numbers", "no key", "no time, or not one like the others"
SUBJECT_COLUMNS = ("topic", "subject")  # stand for the origin of a message, if its records have no such column


class JsonReader:
    """Make batches of JSON: objects {"time": …, "a": 1.5}, lists of them, lists of numbers, or plain numbers.

    A payload can hold several records: a list of objects or of lists, or several lines. The columns are inferred from
    the first records, unless `schema` is given.
    """

    def __init__(self, spec: ColumnSpec, schema: Schema | None = None) -> None:
        self.spec, self.schema = spec, schema

    def make_batch(self, payloads: Sequence[bytes], position: Any, subjects: Sequence[str] | None = None) -> Batch:
        """Parse payloads. `subjects` is the origin of each, which can be the key."""
        records: list[tuple[dict[str, Any] | str, bytes]] = []
        for i, payload in enumerate(payloads):
            for record in self._parse_payload(payload):
                if subjects is not None and isinstance(record, dict):
                    for name in SUBJECT_COLUMNS:
                        record.setdefault(name, subjects[i])
                records.append((record, payload))
        if self.schema is None and (sample := [record for record, _ in records if isinstance(record, dict)]):
            self._infer_schema(sample[:SCHEMA_SAMPLE_RECORDS])
        return self._make_batch_from_records(self.schema or Schema((DEFAULT_VALUE_NAME,)), records, position)

    def _parse_payload(self, payload: bytes) -> Iterator[dict[str, Any] | str]:
        """Yield the records of a payload, or the reason why it has none."""
        if len(payload) > MAX_RECORD_BYTES:
            yield RECORD_TOO_LONG
            return
        try:
            value = json.loads(payload)
        except UnicodeDecodeError:
            yield NOT_UTF8
        except RecursionError:
            yield NOT_JSON
        except ValueError:
            lines = [line for line in payload.splitlines() if line.strip()]
            if len(lines) < 2:
                yield NOT_JSON
            for line in lines if len(lines) > 1 else ():
                yield from self._parse_payload(line)
        else:
            is_sequence = isinstance(value, list) and any(isinstance(item, dict | list) for item in value)
            for item in value if is_sequence else [value]:
                yield _to_record(item)

    def _infer_schema(self, sample: list[dict[str, Any]]) -> None:
        """Infer the columns; the origin of a message is one only on request."""
        key = self.spec.key
        records = [
            {k: v for k, v in record.items() if (k not in SUBJECT_COLUMNS or k == key) and is_valid_utf8(k)}
            for record in sample
        ]
        if key in SUBJECT_COLUMNS and not any(key in record for record in records):
            raise InvalidInputError(f"key: {key!r} not found. Only messages of a broker have one.")
        self.schema = replace(infer_schema(records, self.spec), key_candidates=())

    def _make_batch_from_records(
        self, schema: Schema, records: Sequence[tuple[dict[str, Any] | str, bytes]], position: Any
    ) -> Batch:
        rejects = RejectLog()
        values: list[list[float]] = []
        record_indexes: list[int] = []
        keys: list[str] = []
        times: list[Any] = []
        names, key, time, kind = schema.values, schema.key, schema.time, schema.time_kind
        for index, (record, payload) in enumerate(records):
            point = record if isinstance(record, str) else _parse_values(record, names)
            if isinstance(record, str) or isinstance(point, str):
                rejects.add(str(point), index, payload)
                continue
            if key is not None:
                key_value = record.get(key)
                if (
                    not (isinstance(key_value, str) and key_value and is_valid_utf8(key_value))
                    and type(key_value) is not int
                ):
                    rejects.add(NO_KEY, index, payload)
                    continue
                keys.append(str(key_value))
            if time is not None and kind is not None:
                moment = parse_time(record.get(time), kind)
                if moment is None:
                    rejects.add(NO_TIME, index, payload)
                    if key is not None:
                        keys.pop()
                    continue
                times.append(moment)
            values.append(point)
            record_indexes.append(index)
        return Batch(
            np.array(values, np.float64).reshape(len(values), len(names)),
            position,
            names,
            None if key is None else StrKeys(keys),
            None if time is None or kind is None else to_time_array(times, kind),
            self.schema,
            n_records=len(records),
            record_index=np.array(record_indexes, np.int64),
            rejects=rejects,
            tz_aware=kind == ZONED_ISO_FORMAT,
        )


def _to_record(value: Any) -> dict[str, Any] | str:
    """Return an object as it is, and name numbers and lists of numbers."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value:
        return (
            {DEFAULT_VALUE_NAME: value[0]}
            if len(value) == 1
            else {f"{DEFAULT_VALUE_NAME}_{i}": item for i, item in enumerate(value)}
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {DEFAULT_VALUE_NAME: value}
    return NOT_A_RECORD


def _parse_values(record: dict[str, Any], names: Sequence[str]) -> list[float] | str:
    """Return the values of a record, or the reason why it has none."""
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
