"""Schemas inferred from the beginnings of real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.exceptions import InvalidInputError
from limpet.streams.formats.csv import CsvReader
from limpet.streams.formats.json import JsonReader
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.sources.file import FileSource
from limpet.streams.timestamps import ISO_FORMAT, NUMBER_FORMAT, TEXT_FORMAT, ZONED_ISO_FORMAT

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real data sets are not beside the project")


def infer_from_csv(text: str, **spec: object) -> Schema:
    return CsvReader.from_sample(text.encode(), ColumnSpec(**spec)).schema  # type: ignore[arg-type]


def read_file(path: Path, content: str | bytes) -> tuple[Schema, list[list[float]], int]:
    """Return schema, values and the number of malformed records of a file."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = FileSource(path)
    batches = list(source.read())
    assert source.schema is not None
    return source.schema, [row for b in batches for row in b.values.tolist()], sum(b.malformed.total for b in batches)


# Names


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("Time (s)", ["0", "0.5", "1.0"], NUMBER_FORMAT),
        ("timestamp_ms", ["1714550400000", "1714550400100"], NUMBER_FORMAT),
        ("unix_time", ["1714550400", "1714550400"], NUMBER_FORMAT),
        ("ts", ["1714550400"], NUMBER_FORMAT),  # one line has to do where lines come slowly
        ("t", ["0.1", "0.2", "0.3"], NUMBER_FORMAT),
        ("DateTime [UTC]", ["2024-05-01 10:00:00"], ISO_FORMAT),
        ("measured", ["2024-05-01T10:00:00+02:00"], ZONED_ISO_FORMAT),
        ("Date/Time", ["5/1/24 10:00 AM"], TEXT_FORMAT),
        ("zeit", ["01.05.2024 10:00"], TEXT_FORMAT),
    ],
)
def test_time_columns(name: str, values: list[str], kind: str) -> None:
    schema = infer_from_csv(f"{name},a\n" + "".join(f"{value},1.5\n" for value in values))
    assert (schema.time, schema.time_kind, schema.values) == (name, kind, ("a",))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("t", ["20.1", "20.1", "20.2"]),  # a temperature
        ("t", ["20.1", "20.4"]),
        ("t [°C]", ["1", "2", "3"]),
        ("time", ["0.31", "0.12"]),  # that something took
        ("uptime", ["1", "2", "3"]),
        ("latency_ms", ["1", "2", "3"]),
    ],
)
def test_numbers_are_not_times(name: str, values: list[str]) -> None:
    schema = infer_from_csv(f"{name},a\n" + "".join(f"{value},1.5\n" for value in values))
    assert (schema.time, schema.values) == (None, (name, "a"))


def test_dates_with_times_precede_dates_and_names() -> None:
    assert infer_from_csv("installed,date,timestamp,a\n2020-01-01,2024-05-01,1714550400,1\n").time == "timestamp"
    assert infer_from_csv("date,datetime,a\n2024-05-01,2024-05-01 10:00,1\n").time == "datetime"
    assert infer_from_csv("Date,Time,a\n2024-05-01,10:00:00,1\n").time == "Date"
    assert infer_from_csv("installed,time,a\n2020-01-01 10:00,1714550400,1\n").time == "time"


def test_time_column_with_late_and_malformed_times() -> None:
    times = [*range(50), 44, *range(50, 99), 1e999, 100]
    assert infer_from_csv("time,a\n" + "".join(f"{value},1.5\n" for value in times)).time == "time"
    sorted_by_sensor = "".join(f"{time},s{sensor},1.5\n" for sensor in range(5) for time in range(20))
    assert infer_from_csv("time,sensor,a\n" + sorted_by_sensor).time == "time"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sensor", "s1"),
        ("sensor_id", "17"),
        ("SensorId", "17"),
        ("machine no", "3"),
        ("Device Name", "x"),
        ("host", "h"),
    ],
)
def test_key_columns(name: str, value: str) -> None:
    schema = infer_from_csv(f"{name},a\n{value},1.5\n")
    assert (schema.key, schema.values) == (name, ("a",))


def test_numbers_are_not_keys() -> None:
    assert infer_from_csv("sensor,a\n20.5,1\n21.5,2\n").key is None  # what it measured
    assert infer_from_csv("sensor_id,a\n20.5,1\n21.5,2\n").key is None
    assert infer_from_csv("id,a\n7,1\n9,2\n").values == ("id", "a")  # no counter: it may be anything


def test_row_numbers_booleans_strings_and_empty_columns_are_ignored() -> None:
    rows = "".join(f"{i},1.5,true,ok{i % 2},,{'x' if i else ''},NA\n" for i in range(200))
    schema = infer_from_csv(",a,flag,state,empty,note,late\n" + rows)
    assert schema.values == ("a",)
    assert schema.ignored == {
        "": "row number",
        "flag": "not numeric",
        "state": "not numeric",
        "empty": "empty",
        "note": "not numeric",
        "late": "empty",
    }
    assert schema.key_candidates == ("state",)
    requested = infer_from_csv(",a,flag,state,empty,note,late\n" + rows, columns=("late",))  # it may come later
    assert requested.values == ("late",)


def test_requested_columns() -> None:
    text = "time,sensor,a,b\n2024-05-01,x,1,2\n2024-05-02,y,2,3\n"
    schema = infer_from_csv(text, columns=("b",), key="none", time="none")
    assert (schema.values, schema.key, schema.time) == (("b",), None, None)
    assert infer_from_csv(text, key="a").values == ("b",)
    assert infer_from_csv(text, time="a").time_kind == NUMBER_FORMAT
    with pytest.raises(InvalidInputError, match=r"'c' not found"):
        infer_from_csv(text, columns=("a", "c"))
    with pytest.raises(InvalidInputError, match="'sensor' must be numeric"):
        infer_from_csv(text, columns=("sensor",))
    with pytest.raises(InvalidInputError, match="is the key already"):
        infer_from_csv(text, columns=("a",), key="a")
    with pytest.raises(InvalidInputError, match="unique"):
        infer_from_csv(text, columns=("a", "a"))
    with pytest.raises(InvalidInputError, match="no column is numeric"):
        infer_from_csv("a,b\nx,y\n1,z\nx,z\n", key="none")


# Forms


def test_byte_order_mark_comments_and_blank_lines_precede_the_header(tmp_path: Path) -> None:
    for content in (
        "\ufefftime,a\n2024-05-01,1.5\n",
        "# a logger\n# made this\ntime,a\n2024-05-01,1.5\n",
        "\ufeff# a logger\r\n\r\ntime,a\r\n2024-05-01,1.5\r\n",
        "\n\ntime,a\n\n2024-05-01,1.5\n\n",
    ):
        schema, values, n_rejected = read_file(tmp_path / "x.csv", content)
        assert (schema.time, schema.values, values, n_rejected) == ("time", ("a",), [[1.5]], 0)


def test_files_without_header(tmp_path: Path) -> None:
    assert read_file(tmp_path / "x.csv", "\ufeff1.5\n2.5\n")[:2] == (Schema(("value",)), [[1.5], [2.5]])
    schema, values, _ = read_file(tmp_path / "x.csv", "2024-05-01T10:00:00Z;1,5;3\n2024-05-01T10:00:01Z;2,5;7\n")
    assert (schema.time, schema.values, values) == ("column_0", ("column_1", "column_2"), [[1.5, 3.0], [2.5, 7.0]])
    schema, values, n_rejected = read_file(tmp_path / "x.csv", "1.5,t\n2.5,f\n")
    assert (schema.values, len(values), n_rejected) == (("column_0",), 2, 0)


def test_numeric_names(tmp_path: Path) -> None:
    schema, values, n_rejected = read_file(tmp_path / "x.csv", "time,1,2\n2024-05-01,1.5,3\n2024-05-02,2.5,4\n")
    assert (schema.values, values, n_rejected) == (("1", "2"), [[1.5, 3.0], [2.5, 4.0]], 0)


def test_decimal_commas(tmp_path: Path) -> None:
    for content in ("zeit;wert\n1;0,5\n2;-1,7e3\n", "zeit\twert\n1\t0,5\n2\t-1,7e3\n"):
        schema, values, n_rejected = read_file(tmp_path / "x.csv", content)
        assert (schema.time, schema.values, values, n_rejected) == ("zeit", ("wert",), [[0.5], [-1700.0]], 0)
    schema, values, n_rejected = read_file(tmp_path / "x.csv", "wert\n0,5\n0,7\n")  # one column only
    assert (schema.values, values, n_rejected) == (("wert",), [[0.5], [0.7]], 0)


def test_quotes(tmp_path: Path) -> None:
    content = '"time","pump, left","b ""2"""\n"2024-05-01 10:00","1.5","2"\n2024-05-01 10:01,2.5,"3"\n'
    schema, values, n_rejected = read_file(tmp_path / "x.csv", content)
    assert (schema.values, values, n_rejected) == (("pump, left", 'b "2"'), [[1.5, 2.0], [2.5, 3.0]], 0)


def test_duplicate_and_blank_names(tmp_path: Path) -> None:
    schema, values, _ = read_file(tmp_path / "x.csv", "a,a,,a_2,\n1,2,3.5,4,5.5\n2,3,5.5,5,6\n")
    assert schema.values == ("a", "a_2", "", "a_2_2", "_2")
    assert values[0] == [1, 2, 3.5, 4, 5.5]


def test_invalid_files_raise(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="the next line has 3 fields"):
        read_file(tmp_path / "x.csv", "a,b\n1,2,3\n2,3,4\n")
    with pytest.raises(InvalidInputError, match=r"x\.csv: no records after the header"):
        read_file(tmp_path / "x.csv", "time,a\n")
    with pytest.raises(InvalidInputError, match="no column is numeric"):
        read_file(tmp_path / "x.csv", "just\nsome\ntext\n")
    with pytest.raises(InvalidInputError, match="source: must be a non-empty file"):
        read_file(tmp_path / "x.csv", " \n\n")
    with pytest.raises(InvalidInputError, match="source: must be UTF-8 text"):
        read_file(tmp_path / "x.csv", "time,a\n1,2\n".encode("utf-16"))


def test_latin1_names(tmp_path: Path) -> None:
    schema, values, n_rejected = read_file(tmp_path / "x.csv", "zeit;°C\n1;0,5\n2;0,7\n".encode("latin-1"))
    assert (schema.values, values, n_rejected) == (("\ufffdC",), [[0.5], [0.7]], 0)


# JSON


def test_json_records() -> None:
    reader = JsonReader(ColumnSpec())
    lines = [b'{"ts": 1714550400.5, "sensor_id": 3, "a": 1, "ok": true, "more": {"x": 1}, "none": null, "tag": [1]}']
    batch = reader.make_batch(lines, None)
    assert reader.schema is not None
    assert (reader.schema.time, reader.schema.key, reader.schema.values) == ("ts", "sensor_id", ("a",))
    assert reader.schema.ignored == {
        "ok": "not numeric",
        "more": "nested",
        "none": "empty",
        "tag": "nested",
    }
    assert batch.values.tolist() == [[1.0]]
    lists = JsonReader(ColumnSpec()).make_batch([b"[1, 2]", b"[[3, 4], [5, 6]]", b"[]"], None)
    assert (lists.names, lists.values.tolist(), lists.malformed.total) == (
        ("value_0", "value_1"),
        [[1, 2], [3, 4], [5, 6]],
        1,
    )


def test_minority_of_different_records() -> None:
    complete = [{"time": float(i), "a": i % 7} for i in range(20)]
    different = [{"a": "broken"}, {"b": 1, "c": 2}, {"time": "soon", "a": None}]
    schema = infer_schema([*different, *complete], ColumnSpec())
    assert (schema.time, schema.time_kind, schema.values) == ("time", NUMBER_FORMAT, ("a",))
    names = JsonReader(ColumnSpec())
    names.make_batch([b'{"a": 1, "\\ud800": 2}'], None)  # half a letter can be written nowhere
    assert names.schema is not None
    assert names.schema.values == ("a",)


def test_schema_round_trip() -> None:
    schema = infer_from_csv("time,sensor,a,note\n2024-05-01,x,1,b\n")
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.spec == ColumnSpec(("a",), "sensor", "time")
    assert Schema(("a",)).spec == ColumnSpec(("a",), "none", "none")


# Real ones


@needs_data
def test_schemas_of_real_files() -> None:
    for path in sorted(DATA.glob("skab/*/*.csv")):
        source = FileSource(path)
        batches = list(source.read())
        assert source.schema is not None
        assert (source.schema.time, source.schema.time_kind) == ("datetime", ISO_FORMAT)
        assert len(source.schema.values) in (8, 10)
        assert "Volume Flow RateRMS" in source.schema.values
        assert sum(batch.malformed.total for batch in batches) == 0
        assert sum(map(len, batches)) == path.read_text().count("\n") - 1
    for path in sorted(DATA.glob("nab_part/*/*.csv")):
        source = FileSource(path)
        batches = list(source.read())
        assert source.schema == Schema(("value",), "timestamp", ISO_FORMAT)
        assert sum(map(len, batches)) == len(path.read_text().splitlines()) - 1
    well = FileSource(DATA / "well_log" / "well.txt")
    assert sum(map(len, well.read())) == 4050
    assert well.schema == Schema(("value",))
