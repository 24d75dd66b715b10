"""Points from JSON records: lines of a file, or payloads of messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys, is_valid_utf8
from limpet.streams.batch import Batch, InputErrorLog
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.timestamps import is_number, parse_time, to_time_array

SCHEMA_SAMPLE_RECORDS = 100  # records that the columns are inferred from
DEFAULT_VALUE_NAME = "value"  # of a number without a name
MAX_RECORD_BYTES = 1 << 20
NOT_JSON, NOT_UTF8, RECORD_TOO_LONG = "not JSON", "not UTF-8", f"longer than {MAX_RECORD_BYTES:,} bytes"
NOT_A_RECORD, NO_KEY, NO_TIME_REASON = "not a record of numbers", "no key", "no time, or not one like the others"
SUBJECT_COLUMNS = ("topic", "subject")  # stand for the origin of a message, if its records have no such column
ParsedRecord = tuple[list[float], Any, str] | str
"""Values, time and key of a record, or the reason why it is malformed."""


class JsonReader:
    """Read JSON: objects {"time": …, "a": 1.5}, lists of them or of numbers, numbers.

    A payload can hold several records: a list of objects or of lists, or several lines.
    """

    def __init__(self, spec: ColumnSpec, schema: Schema | None = None) -> None:
        self.spec, self.schema = spec, schema

    def make_batch(self, payloads: Sequence[bytes], position: Any, subjects: Sequence[str] | None = None) -> Batch:
        """Parse payloads. `subjects` is the origin of each, which can be the key."""
        records: list[tuple[dict[str, Any] | str, bytes]] = []
        for i, payload in enumerate(payloads):
            for record in _parse_payload(payload):
                if subjects is not None and isinstance(record, dict):
                    for name in SUBJECT_COLUMNS:
                        record.setdefault(name, subjects[i])
                records.append((record, payload))
        if self.schema is None and (sample := [record for record, _ in records if isinstance(record, dict)]):
            self._infer_schema(sample[:SCHEMA_SAMPLE_RECORDS])
        schema = self.schema or Schema((DEFAULT_VALUE_NAME,))
        parsed = ((_parse_record(record, schema), payload) for record, payload in records)
        batch = batch_from_parsed(parsed, schema, position)
        batch.schema = self.schema
        return batch

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


def _parse_payload(payload: bytes) -> Iterator[dict[str, Any] | str]:
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
            return
        for line in lines:
            yield from _parse_payload(line)
    else:
        is_sequence = isinstance(value, list) and any(isinstance(item, dict | list) for item in value)
        for item in value if is_sequence else [value]:
            yield _to_record(item)


def _to_record(value: Any) -> dict[str, Any] | str:
    """Return an object as it is, and name numbers and lists of numbers."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and len(value) > 1:
        return {f"{DEFAULT_VALUE_NAME}_{i}": item for i, item in enumerate(value)}
    if isinstance(value, list) and value:
        return {DEFAULT_VALUE_NAME: value[0]}
    return {DEFAULT_VALUE_NAME: value} if is_number(value) else NOT_A_RECORD


def _parse_record(record: dict[str, Any] | str, schema: Schema) -> ParsedRecord:
    if isinstance(record, str):
        return record
    point: list[float] = []
    for name in schema.values:
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
    moment = None
    key: Any = ""
    if schema.key is not None:
        key = record.get(schema.key)
        if type(key) is int:
            key = str(key)
        elif not (isinstance(key, str) and key and is_valid_utf8(key)):
            return NO_KEY
    if schema.time is not None and schema.time_kind is not None:
        moment = parse_time(record.get(schema.time), schema.time_kind)
        if moment is None:
            return NO_TIME_REASON
    return point, moment, key


def batch_from_records(records: Iterable[dict[str, Any]], schema: Schema, position: Any) -> Batch:
    """Return the points of records; those that do not fit the schema are malformed.

    >>> batch = batch_from_records([{"a": 1, "b": "x"}, {"a": "y"}], Schema(("a",)), position=2)
    >>> batch.values.tolist(), batch.malformed.counts
    ([[1.0]], Counter({"'a' is not a number": 1}))
    """
    return batch_from_parsed(((_parse_record(record, schema), record) for record in records), schema, position)


def batch_from_parsed(records: Iterable[tuple[ParsedRecord, Any]], schema: Schema, position: Any) -> Batch:
    """Return the points of parsed records, each with its text or the record."""
    malformed, n_records, accepted = InputErrorLog(), 0, []
    for index, (parsed, text) in enumerate(records):
        n_records += 1
        if isinstance(parsed, str):
            malformed.add(parsed, index, text)
        else:
            accepted.append((index, *parsed))
    record_index, points, times, keys = zip(*accepted, strict=True) if accepted else ((), (), (), ())
    batch = Batch(
        np.array(points, np.float64).reshape(len(points), len(schema.values)),
        position,
        schema.values,
        None if schema.key is None else StrKeys(list(keys)),
        None if schema.time is None or schema.time_kind is None else to_time_array(times, schema.time_kind),
        schema,
        record_index=np.array(record_index, np.int64),
    )
    batch.n_records, batch.malformed, batch.tz_aware = n_records, malformed, schema.is_zoned
    return batch
