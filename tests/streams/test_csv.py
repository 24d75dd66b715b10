"""CSV: the parser with Arrow equals the one without, and lines are parsed independently."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.streams.batch import Batch
from limpet.streams.formats.csv import ArrowCsvReader, CsvDialect, CsvReader
from limpet.streams.formats.json import MAX_RECORD_BYTES, NO_KEY, NO_TIME_REASON, NOT_UTF8, RECORD_TOO_LONG
from limpet.streams.results import to_str_list
from limpet.streams.schema import ColumnSpec, Schema
from limpet.streams.timestamps import ISO_FORMAT, NUMBER_FORMAT, TEXT_FORMAT, ZONED_ISO_FORMAT

NUMBERS = (
    *("1.5", "-2", "+1.5", "1e400", "-1e400", "1e-400", "nan(abc)", "nan()", "-nan", "+nan", "inf", "Infinity", "-inf"),
    *("1_0", "0x10", "1.", ".5", "", "NA", " NA", "na", "NaN", "-", "?", " 1.5 ", "\t2", "1E+5", "1d5", "1e", "007"),
    *("123456789012345678901234567890", "9007199254740993", "0.1000000000000000055511151231257827", "1,5", "1.5.5"),
    *("--1", "５", "\xa01", "1\x002", "true", "None", "null", "N/A", '"1.5"', '" 2"', '"NA"', '""', '"1""5"', '1"5"'),
    *('"1"5', "1.0f", "+", ".", "e5", "-0", "4.9e-324", "1.7976931348623159e308", "\x0b1", "1\x1f", "1\x85"),
)
TIMES = (
    *("2024-05-01", "2024-05-01 10:00", "2024-05-01T10", "2024-05-01T10:00:00.5", "2024-05-01T10:00:00."),
    *("2024-05-01T10:00:00.123456789", "2024-05-01T10:00:00.1234567891", "1677-10-01", "1677-12-31T23:00-05:00"),
    *("2262-01-01T00:00+05:00", "2261-12-31T23:59-05:00", "0001-01-01", "9999-01-01", "2024-02-30", "2023-02-29"),
    *("2024-05-01T24:00", "2024-05-01T23:59:60", "2024-05-01T10:00:00Z", "2024-05-01T10:00:00+01:00"),
    *("2024-05-01T10:00:00+0100", "2024-05-01T10:00:00-01", "2024-05-01T10:00:00-25:00", "2024-05-01T10:00+23:60"),
    *("2024-05-01T100000", "20240501", " 2024-05-01", "2024-05-01 ", "2024-05-01Z", "2024-05-01t10:00", "2024-5-1"),
    *("soon", "", "NA", "null", "-", '"2024-05-01"', "17", "17.5", "1e301", "-5", "nan", "inf", "2024-13-01", "+17"),
)
KEYS = (
    "a",
    "b",
    "",
    "NA",
    " a",
    '"a"',
    '"a,b"',
    '"a""b"',
    '"a"b',
    '""',
    'a"',
    'x"y',
    '"',
    '"x',
    "é",
    "a\x00",
    "a\rb",
    "\r",
)
TIME_FORMATS = (None, NUMBER_FORMAT, ISO_FORMAT, ZONED_ISO_FORMAT, TEXT_FORMAT)
VALID_TIMES = {
    NUMBER_FORMAT: "17",
    ISO_FORMAT: "2024-05-01T10:00:00",
    ZONED_ISO_FORMAT: "2024-05-01T10:00:00Z",
    TEXT_FORMAT: "x",
}


@st.composite
def draw_cases(draw: Any) -> tuple[CsvReader, list[bytes], bytes]:
    """Return a reader, lines and their line end."""
    separator = draw(st.sampled_from(",;\t|"))
    decimal = "." if separator == "," else draw(st.sampled_from(".,"))
    kind, keyed = draw(st.sampled_from(TIME_FORMATS)), draw(st.booleans())
    names = ["a", "b", *(["t"] if kind else []), *(["k"] if keyed else []), "rest"]
    columns = Schema(("a", "b"), "t" if kind else None, kind, "k" if keyed else None)
    unusual = {"a": NUMBERS, "b": NUMBERS, "t": TIMES, "k": KEYS, "rest": (*NUMBERS, *KEYS)}
    valid = {"a": f"1{decimal}5", "b": "2", "t": VALID_TIMES.get(kind or "", ""), "k": "a", "rest": "z"}
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        which = draw(st.sampled_from([*names, "", "short", "long"]))
        fields = [draw(st.sampled_from(unusual[name])) if name == which else valid[name] for name in names]
        fields = fields[:-1] if which == "short" else [*fields, "x"] if which == "long" else fields
        is_latin1 = draw(st.booleans()) and separator.join(fields).isprintable()
        lines.append(separator.join(fields).encode("latin-1" if is_latin1 else "utf-8", "ignore"))
    return (
        CsvReader(CsvDialect(separator, decimal, tuple(names), True), columns),
        lines,
        draw(st.sampled_from([b"\n", b"\r\n"])),
    )


def to_comparable(batch: Batch) -> list[Any]:
    """Return the contents of a batch in a form that can be compared."""
    assert batch.record_index is not None
    values = np.where(np.isnan(batch.values), np.nan, batch.values)  # all NaNs are equal
    times = None if batch.times is None else (batch.times.dtype, batch.times.tolist())
    keys = None if batch.keys is None else to_str_list(batch.keys)
    malformed = (dict(batch.malformed.counts), batch.malformed.first)
    return [
        values.tobytes(),
        times,
        keys,
        batch.n_records,
        batch.record_index.tolist(),
        malformed,
        batch.names,
        batch.tz_aware,
    ]


def concatenate(batches: Sequence[Batch]) -> list[Any]:
    """Return the contents of successive batches."""
    values, times, keys, indexes, counts, n = b"", [], [], [], {}, 0  # type: ignore[var-annotated]
    for batch in batches:
        data, batch_times, batch_keys, n_records, batch_indexes, (malformed, _), _, _ = to_comparable(batch)
        values += data
        times += [] if batch_times is None else batch_times[1]
        keys += batch_keys or []
        indexes += [n + index for index in batch_indexes]
        n += n_records
        for reason, count in malformed.items():
            counts[reason] = counts.get(reason, 0) + count
    return [values, times, keys, n, indexes, counts]


@settings(max_examples=400)
@given(draw_cases(), st.booleans())
def test_both_parsers_agree_and_lines_are_independent(case: tuple[CsvReader, list[bytes], bytes], ended: bool) -> None:
    reader, lines, end = case
    data = end.join(lines) + (end if ended else b"")
    assert to_comparable(reader.make_batch(data, None)) == to_comparable(reader._make_batch_from_lines(data, None))
    single = [reader.make_batch(line + end, None) for line in data.replace(end, b"\n").split(b"\n")]
    assert concatenate([reader.make_batch(data, None)]) == concatenate(single)


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from(
            ['1,"a"\n', "1,a\n", "1,", "2", '"', '""', '"a', 'a"', ",", "\n", "\n1,", "\r\n", " ", '1,"x,y"\n', "\r"]
        ),
        max_size=9,
    ),
    st.booleans(),
)
def test_both_parsers_agree_on_quotes(pieces: list[str], keyed: bool) -> None:
    columns = Schema(("a",), None, None, "k") if keyed else Schema(("a",), "k", TEXT_FORMAT)
    reader = CsvReader(CsvDialect(",", ".", ("a", "k"), True), columns)
    data = "".join(pieces).encode()
    assert to_comparable(reader.make_batch(data, None)) == to_comparable(reader._make_batch_from_lines(data, None))
    single = [reader.make_batch(line, None) for line in data.split(b"\n")]
    assert concatenate([reader.make_batch(data, None)]) == concatenate(single)


def test_well_formed_lines_are_read_by_arrow() -> None:
    reader = ArrowCsvReader(CsvDialect(",", ".", ("t", "k", "a"), True), Schema(("a",), "t", ISO_FORMAT, "k"))
    data = b'2024-05-01,x,1.5\n2024-05-01 10:00,"y, z",NA\n2024-05-01T10:00:00.5,x,-inf\n'
    batch = reader.make_batch(data, 7)
    assert batch is not None
    assert batch.position == 7
    assert batch.values.ravel().tolist()[::2] == [1.5, -np.inf]
    assert reader.make_batch(b"2024-05-01T10:00Z,x,1.5\r\n2024-05-01T10:00+01,x,1.5\r\n", 0) is not None
    assert reader.make_batch(b"2024-05-01T10:00Z,x,1.5\n2024-05-01T10:00,x,1.5\n", 0) is None  # a zone in one of them


def test_schema_and_points_are_equal_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"time;sensor;a\n" + b"".join(b"2024-05-01T10:00:%02dZ;s%d;%d,5\n" % (i, i % 3, i) for i in range(60))
    with_arrow = CsvReader.from_sample(head, ColumnSpec())
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)  # type: ignore[arg-type]
    without_arrow = CsvReader.from_sample(head, ColumnSpec())
    assert (without_arrow.schema, without_arrow.dialect) == (with_arrow.schema, with_arrow.dialect)
    assert without_arrow._arrow_reader is None
    assert with_arrow._arrow_reader is not None
    data = head.partition(b"\n")[2]
    assert to_comparable(without_arrow.make_batch(data, None)) == to_comparable(with_arrow.make_batch(data, None))


def test_reasons_of_malformed_records() -> None:
    reader = CsvReader(CsvDialect(",", ".", ("t", "k", "a"), True), Schema(("a",), "t", ISO_FORMAT, "k"))
    lines = {
        b"2024-05-01,x": "not 3 fields",
        b"2024-05-01,x,1a": "'a' is not a number",
        b"2024-05-01,x,1\xff": NOT_UTF8,
        b"2024-05-01,\xff,1": NOT_UTF8,
        b"2024-05-01,,1": NO_KEY,
        b"soon,x,1": NO_TIME_REASON,
        b"2024-05-01,x," + b" " * MAX_RECORD_BYTES + b"1": RECORD_TOO_LONG,
    }
    batch = reader.make_batch(b"\n".join([*lines, b"2024-05-01,x,7"]), None)
    assert batch.malformed.counts == {reason: list(lines.values()).count(reason) for reason in lines.values()}
    assert [error.index for error in batch.malformed.first] == [0, 1, 2, 3, 4]
    assert [error.text for error in batch.malformed.first][1] == "2024-05-01,x,1a"
    assert (batch.n_records, batch.values.tolist()) == (8, [[7.0]])


def test_long_fields_in_quotes() -> None:
    reader = CsvReader(CsvDialect(",", ".", ("a", "note"), True), Schema(("a",)))
    long = b'1.5,"' + b"x" * 500_000 + b'"'
    for data in (long + b"\n", long + b"\n2,one\rtwo\n", b'1.5,"a' + b"x" * 300_000):
        assert reader.make_batch(data, None).values[0, 0] == 1.5


def test_repeated_header() -> None:
    reader = CsvReader.from_sample(b"a,a\n1,2\n", ColumnSpec())
    assert reader.is_header(b"a,a\r\n")
    assert reader.is_header("\ufeffa, a\n".encode())
    assert not reader.is_header(b"a,b\n")
    assert not CsvReader.from_sample(b"1,2\n", ColumnSpec()).is_header(b"column_0,column_1\n")
