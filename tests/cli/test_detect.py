"""`limpet detect`: from a file to a table of alarms, a report, and results."""

import csv
import json
import sqlite3

import numpy as np
import pytest

import limpet as lp
from helpers.commands import detect, here, limpet
from limpet.exceptions import InvalidInputError

N = 1200
rng = np.random.default_rng(5)
LEVEL = rng.normal(20.0, 0.5, N).round(3)
LEVEL[800:] += 3.0
LEVEL[400] = 90.0
SECONDS = [f"2026-03-01 10:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(N)]


def write(path, header, rows):
    path.write_text("\n".join([",".join(header), *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def pump(tmp_path, monkeypatch):
    """A file with a time, a level and a remark, in the folder one is in."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "pump.csv", ["time", "level", "remark"], zip(SECONDS, LEVEL, ["ok"] * N, strict=True))


def alone(values=LEVEL, **settings):
    return (lp.SRA if "gamma" in settings else lp.Detector)(**settings).process(values)


def test_a_file_is_enough(pump):
    code, text = detect(pump)
    trace = alone()
    assert code == 0
    assert "watching  level" in text
    assert "time (ISO 8601)" in text
    assert "remark (not numeric)" in text
    assert f"{N:,} records" in text
    for alarm, at in zip(trace.alarms, trace.alarm_index, strict=True):
        assert alarm.kind in text
        assert SECONDS[at].replace(" ", "T") in text
    with open("alarms.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["kind"], int(row["row"]), int(row["record"])) for row in rows] == [
        (alarm.kind, alarm.row, alarm.row) for alarm in trace.alarms
    ]
    page = (pump.parent / "report.html").read_text(encoding="utf-8")
    assert "pump.csv" in page
    assert page.count("data:image/png") >= 1


def test_a_season_that_is_not_declared_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hours = 20.0 + 5.0 * np.sin(np.arange(1500) * 2.0 * np.pi / 24.0) + 0.5 * np.random.default_rng(0).normal(size=1500)
    path = write(tmp_path / "hours.csv", ["level"], hours[:, None])
    advice = "set its season, or lags to at least 2."
    assert advice in " ".join(detect(path, no_report=True)[1].split())
    assert "set its season" not in detect(path, no_report=True, season=24)[1]


def test_by_hand_it_is_the_papers_algorithm_and_claims_nothing(pump, capsys):
    code, text = detect(pump, learner="sra", gamma=6.0, rho=0.01)
    assert code == 0
    assert f"{alone(gamma=6.0, rho=0.01).rejected.sum():,} points rejected" in text
    assert "raises no alarms" in text
    assert "No alarm." not in text
    page = (pump.parent / "report.html").read_text(encoding="utf-8")
    assert "Nothing to report" not in page
    assert "How far to trust them" not in page
    settings = {"gamma": 30.0, "beta": 0.1, "M": 50.0, "norm": "mean"}
    assert detect(pump, learner="sra", **settings, output_format="json", no_report=True)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["counts"]["rejected"] == alone(**settings).rejected.sum()
    assert not output["raises_alarms"]
    with pytest.raises(InvalidInputError, match="fail-on-alarm"):
        detect(pump, learner="sra", rho=0.01, fail_on_alarm=True)
    with pytest.raises(InvalidInputError, match="beta"):
        detect(pump, learner="sra", gamma=6.0, beta=0.1)
    with pytest.raises(InvalidInputError, match="--gamma: requires --learner sra"):
        detect(pump, gamma=6.0)
    with pytest.raises(InvalidInputError, match="--far: requires --learner detector"):
        detect(pump, learner="sra", gamma=6.0, far=1e-3)


def test_json_is_for_machines(pump, capsys):
    code, text = detect(pump, output_format="json", no_report=True, fail_on_alarm=True)
    output = json.loads(capsys.readouterr().out)
    assert text == ""
    assert code == 1
    assert output["schema"] == {
        "columns": ["level"],
        "time": "time",
        "key": None,
        "separate": False,
        "ignored": {"remark": "not numeric"},
    }
    assert [alarm["row"] for alarm in output["alarms"]] == [alarm.row for alarm in alone().alarms]
    assert output["outputs"] == []
    assert not list(pump.parent.glob("*.html"))


def test_every_point_with_its_score(pump):
    detect(pump, points=["scored.db", "scored.csv", "scored.parquet", "scored.jsonl"], no_report=True)
    score = [None if score != score else score for score in alone().score.tolist()]
    with sqlite3.connect("scored.db") as database:
        assert [row[0] for row in database.execute("select score from points order by n")] == score
    with open("scored.csv", encoding="utf-8") as file:
        assert [None if row["score"] == "" else float(row["score"]) for row in csv.DictReader(file)] == score
    import pyarrow.parquet

    table = pyarrow.parquet.read_table("scored.parquet").to_pydict()
    assert [None if score != score else score for score in table["score"]] == score
    with open("scored.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["score"] for line in file] == score


def test_many_streams_in_one_file_are_as_each_by_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(i, key, LEVEL[i] + 5 * (key == "c")) for i in range(N) for key in "abc"]
    path = write(tmp_path / "fleet.csv", ["time", "sensor", "level"], rows)
    code, text = detect(path)
    assert code == 0
    assert "sensor: one stream per key" in text
    detect(path, output_format="json", no_report=True)
    output = json.loads(capsys.readouterr().out)
    for key in "abc":
        expected = [alarm for alarm in output["alarms"] if alarm["key"] == key]
        assert [alarm["row"] for alarm in expected] == [alarm.row for alarm in alone(LEVEL + 5 * (key == "c")).alarms]
    assert output["counts"]["records"] == 3 * N
    assert detect(path, no_key=True, output_format="json", no_report=True, late="learn")[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["schema"]["key"] is None
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>Streams</h2>" in page


def test_a_wide_file_is_watched_column_by_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"channel_{i}" for i in range(9)]
    wide = np.column_stack([LEVEL if i == 4 else rng.normal(size=N) for i in range(9)])
    path = write(tmp_path / "wide.csv", names, wide.tolist())
    assert detect(path)[0] == 0
    assert detect(path, output_format="json", no_report=True)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["schema"]["separate"]
    expected = [alarm for alarm in output["alarms"] if alarm["variables"] == ["channel_4"]]
    assert [alarm["row"] for alarm in expected] == [alarm.row for alarm in alone().alarms]
    assert detect(path, columns=["channel_4"], output_format="json", no_report=True, joint=False)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert not output["schema"]["separate"]


def test_a_file_of_another_program_is_kept(pump):
    (pump.parent / "alarms.csv").write_text("mine\n1\n", encoding="utf-8")
    _, text = detect(pump, no_report=True)
    assert "was not written by limpet" in text
    assert (pump.parent / "alarms.csv").read_text(encoding="utf-8") == "mine\n1\n"


def test_files_of_others_are_not_written_over_when_named(pump):
    other = pump.parent / "mine.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    for settings in ({"alarms": ["mine.csv"]}, {"points": ["mine.csv"]}):
        with pytest.raises(InvalidInputError, match="was not written by limpet"):
            detect(pump, **settings)
    (pump.parent / "page.html").write_text("<title>mine</title>", encoding="utf-8")
    import pandas

    pandas.DataFrame({"a": [1.0]}).to_parquet("mine.parquet")
    for settings in ({"report": "page.html"}, {"points": ["mine.parquet"]}):
        with pytest.raises(InvalidInputError, match="was not written by limpet"):
            detect(pump, **settings)
    with pytest.raises(InvalidInputError, match="both alarms and points"):
        detect(pump, alarms=["z.jsonl"], points=["./z.jsonl"])
    assert other.read_text(encoding="utf-8") == "a,b\n1,2\n"
    for _ in range(2):  # results of limpet are overwritten
        assert detect(pump, points=["p.csv", "p.parquet", "p.jsonl", "p.db"], report="p.html")[0] == 0
    with sqlite3.connect("p.db") as database:
        assert database.execute("select count(*) from points").fetchone() == (N,)
    assert len((pump.parent / "p.csv").read_text(encoding="utf-8").splitlines()) == N + 1


def test_a_short_file_is_reported_as_too_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "short.csv", ["level"], [(value,) for value in LEVEL[:60]])
    assert "too short" in detect(path, no_report=True)[1]


@pytest.mark.parametrize("setting", ["points", "alarms", "report"])
def test_what_is_read_is_not_written_over(setting, pump):
    before = pump.read_bytes()
    with pytest.raises(InvalidInputError, match="is the input file"):
        detect(pump, **{setting: "./pump.csv" if setting == "report" else ["./pump.csv"]})
    assert pump.read_bytes() == before


def test_malformed_records_are_reported_with_their_reasons(pump):
    lines = pump.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[100:100] = ["broken\n", "2026-03-01 10:01:30,warm,ok\n", "soon,20.0,ok\n"]
    pump.write_text("".join(lines), encoding="utf-8")
    code, text = detect(pump, no_report=True)
    assert code == 0
    assert "3 malformed records: 1 not 3 fields, 1 'level' is not a number, 1 no time" in text
    assert "record 99: not 3 fields: broken" in text


MISTAKES = [
    (["nowhere.csv"], "nowhere.csv does not exist"),
    (["pump.csv", "--columns", "preasure"], "columns: 'preasure' not found. The columns are time, level, remark."),
    (["pump.csv", "--columns", "remark"], "columns: 'remark' must be numeric, got 'ok'"),
    (["pump.csv", "--key", "sensor"], "'sensor' not found"),
    (["pump.csv", "--time", "when"], "'when' not found"),
    (["pump.csv", "--far", "2"], "far"),
    (["pump.csv", "--late", "maybe"], "--late: must be 'skip' or 'learn', got 'maybe'"),
    (["pump.csv", "--alarms", "alarms.xls"], "must be .jsonl, .csv, .parquet or .db"),
    (["pump.csv", "--report", "nowhere/r.html"], "nowhere/r.html: cannot be written"),
    (["pump.csv", "--max-keys", "10"], "--max-keys: "),
    (["."], "is a directory"),
    (["nats://me:secret@host/level"], "FILE: must be a file, got nats://host/level. `limpet watch URL"),
    (["empty.csv"], "empty.csv is empty"),
    (["words.csv"], "no column is numeric"),
    (["header.csv"], "no records after the header a, b"),
    (["picture.csv"], "is not a text file"),
    ([], "FILE: is missing"),
]


def test_errors_are_one_line(pump, capsys, monkeypatch):
    folder = pump.parent
    (folder / "empty.csv").write_bytes(b"")
    (folder / "words.csv").write_text("a,b\nx,y\nz,w\n", encoding="utf-8")
    (folder / "header.csv").write_text("a,b\n", encoding="utf-8")
    (folder / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    for words, message in MISTAKES:
        code, _, errors = here(["detect", *words], capsys, monkeypatch)
        assert code == 2, (words, errors)
        assert message in errors, (words, errors)
        assert errors.count("\n") == 1, (words, errors)
    result = limpet("detect", "nowhere.csv", cwd=folder)
    assert (result.returncode, result.stderr) == (2, "limpet: FILE: nowhere.csv does not exist.\n")


def test_a_configuration_file_is_the_same_as_flags(pump, capsys, monkeypatch):
    (pump.parent / "h.toml").write_text(
        'source = "pump.csv"\ncolumns = ["level"]\nfar = 1e-3\nno_report = true\n'
        'output_format = "json"\ncheckpoint_interval = 3\n',
        encoding="utf-8",
    )
    ours = json.loads(here(["detect", "--config", "h.toml"], capsys, monkeypatch)[1])
    flags = ["--columns", "level", "--far", "1e-3", "--no-report", "--output-format", "json"]
    assert json.loads(here(["detect", "pump.csv", *flags], capsys, monkeypatch)[1]) == ours
    before = json.loads(here(["detect", "--config", "h.toml", "--far", "1e-6"], capsys, monkeypatch)[1])
    assert [alarm["row"] for alarm in before["alarms"]] == [alarm.row for alarm in alone(far=1e-6).alarms]
