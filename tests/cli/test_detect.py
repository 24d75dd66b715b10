"""`limpet detect`: from a file to a table of alarms, a report, and results."""

import csv
import json
import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import limpet as lp
from helpers.commands import detect_in_process, run_in_process, run_limpet
from limpet.detection.alarm import most_important
from limpet.exceptions import InvalidInputError

N = 1200
rng = np.random.default_rng(5)
LEVELS = rng.normal(20.0, 0.5, N).round(3)
LEVELS[800:] += 3.0
LEVELS[400] = 90.0
SECONDS = [f"2026-03-01 10:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(N)]


def write_csv(path, header, rows):
    path.write_text("\n".join([",".join(header), *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def csv_path(tmp_path, monkeypatch):
    """A file with a time, a level and a remark, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return write_csv(tmp_path / "pump.csv", ["time", "level", "remark"], zip(SECONDS, LEVELS, ["ok"] * N, strict=True))


def run_learner(values=LEVELS, **settings):
    return (lp.SRA if "gamma" in settings else lp.Detector)(**settings).process(values)


def test_file_needs_no_options(csv_path):
    code, text = detect_in_process(csv_path)
    trace = run_learner()
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
    page = (csv_path.parent / "report.html").read_text(encoding="utf-8")
    assert "pump.csv" in page
    assert page.count("data:image/png") >= 1


def test_undeclared_season_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hours = 20.0 + 5.0 * np.sin(np.arange(1500) * 2.0 * np.pi / 24.0) + 0.5 * np.random.default_rng(0).normal(size=1500)
    path = write_csv(tmp_path / "hours.csv", ["level"], hours[:, None])
    advice = "set its season, or lags to at least 2."
    assert advice in " ".join(detect_in_process(path, no_report=True)[1].split())
    assert "set its season" not in detect_in_process(path, no_report=True, season=24)[1]


def test_sra_raises_no_alarms_and_has_no_false_alarm_statement(csv_path, capsys):
    code, text = detect_in_process(csv_path, learner="sra", gamma=6.0, rho=0.01)
    assert code == 0
    assert f"{run_learner(gamma=6.0, rho=0.01).rejected.sum():,} points rejected" in text
    assert "raises no alarms" in text
    assert "No alarm." not in text
    page = (csv_path.parent / "report.html").read_text(encoding="utf-8")
    assert "No changes and no anomalies" not in page
    assert "How far to trust them" not in page
    settings = {"gamma": 30.0, "beta": 0.1, "M": 50.0, "norm": "mean"}
    assert detect_in_process(csv_path, learner="sra", **settings, output_format="json", no_report=True)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["counts"]["rejected"] == run_learner(**settings).rejected.sum()
    assert not output["raises_alarms"]
    with pytest.raises(InvalidInputError, match="fail-on-alarm"):
        detect_in_process(csv_path, learner="sra", rho=0.01, fail_on_alarm=True)
    with pytest.raises(InvalidInputError, match="beta"):
        detect_in_process(csv_path, learner="sra", gamma=6.0, beta=0.1)
    with pytest.raises(InvalidInputError, match="--gamma: requires --learner sra"):
        detect_in_process(csv_path, gamma=6.0)
    with pytest.raises(InvalidInputError, match="--far: requires --learner detector"):
        detect_in_process(csv_path, learner="sra", gamma=6.0, far=1e-3)


def test_json_output(csv_path, capsys):
    code, text = detect_in_process(csv_path, output_format="json", no_report=True, fail_on_alarm=True)
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
    assert [alarm["row"] for alarm in output["alarms"]] == [alarm.row for alarm in run_learner().alarms]
    assert output["outputs"] == []
    assert not list(csv_path.parent.glob("*.html"))


def test_scores_of_all_points_are_written(csv_path):
    detect_in_process(csv_path, points=["scored.db", "scored.csv", "scored.parquet", "scored.jsonl"], no_report=True)
    score = [None if score != score else score for score in run_learner().score.tolist()]
    with sqlite3.connect("scored.db") as database:
        assert [row[0] for row in database.execute("select score from points order by n")] == score
    with open("scored.csv", encoding="utf-8") as file:
        assert [None if row["score"] == "" else float(row["score"]) for row in csv.DictReader(file)] == score
    import pyarrow.parquet

    table = pyarrow.parquet.read_table("scored.parquet").to_pydict()
    assert [None if score != score else score for score in table["score"]] == score
    with open("scored.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["score"] for line in file] == score


def test_streams_in_one_file_equal_separate_streams(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(i, key, LEVELS[i] + 5 * (key == "c")) for i in range(N) for key in "abc"]
    path = write_csv(tmp_path / "fleet.csv", ["time", "sensor", "level"], rows)
    code, text = detect_in_process(path)
    assert code == 0
    assert "sensor: one stream per key" in text
    detect_in_process(path, output_format="json", no_report=True)
    output = json.loads(capsys.readouterr().out)
    for key in "abc":
        expected = [alarm for alarm in output["alarms"] if alarm["key"] == key]
        assert [alarm["row"] for alarm in expected] == [
            alarm.row for alarm in run_learner(LEVELS + 5 * (key == "c")).alarms
        ]
    assert output["counts"]["records"] == 3 * N
    assert detect_in_process(path, no_key=True, output_format="json", no_report=True, late="learn")[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["schema"]["key"] is None
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>Streams</h2>" in page


def test_columns_of_a_wide_file_are_monitored_separately(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"channel_{i}" for i in range(9)]
    wide = np.column_stack([LEVELS if i == 4 else rng.normal(size=N) for i in range(9)])
    path = write_csv(tmp_path / "wide.csv", names, wide.tolist())
    assert detect_in_process(path)[0] == 0
    assert detect_in_process(path, output_format="json", no_report=True)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert output["schema"]["separate"]
    expected = [alarm for alarm in output["alarms"] if alarm["variables"] == ["channel_4"]]
    assert [alarm["row"] for alarm in expected] == [alarm.row for alarm in run_learner().alarms]
    assert detect_in_process(path, columns=["channel_4"], output_format="json", no_report=True, joint=False)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert not output["schema"]["separate"]


def test_default_output_does_not_overwrite_files_of_other_programs(csv_path):
    (csv_path.parent / "alarms.csv").write_text("mine\n1\n", encoding="utf-8")
    _, text = detect_in_process(csv_path, no_report=True)
    assert "was not written by limpet" in text
    assert (csv_path.parent / "alarms.csv").read_text(encoding="utf-8") == "mine\n1\n"


def test_named_output_does_not_overwrite_files_of_other_programs(csv_path):
    other = csv_path.parent / "mine.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    for settings in ({"alarms": ["mine.csv"]}, {"points": ["mine.csv"]}):
        with pytest.raises(InvalidInputError, match=f"--{next(iter(settings))}: must not be another program's file"):
            detect_in_process(csv_path, **settings)
    (csv_path.parent / "page.html").write_text("<title>mine</title>", encoding="utf-8")
    import pandas

    pandas.DataFrame({"a": [1.0]}).to_parquet("mine.parquet")
    for settings in ({"report": "page.html"}, {"points": ["mine.parquet"]}):
        with pytest.raises(InvalidInputError, match=f"--{next(iter(settings))}: must not be another program's file"):
            detect_in_process(csv_path, **settings)
    with pytest.raises(InvalidInputError, match="--alarms: must not be another output"):
        detect_in_process(csv_path, alarms=["z.jsonl"], points=["./z.jsonl"])
    assert other.read_text(encoding="utf-8") == "a,b\n1,2\n"
    header = "record_id,credit_score,records_onset\n1,2.0,3\n"  # only looks similar
    for name, text in {"like.csv": header, "like.jsonl": '{"record": 1, "my_score": 2}\n'}.items():
        (csv_path.parent / name).write_text(text, encoding="utf-8")
        for option in ("alarms", "points"):
            with pytest.raises(InvalidInputError, match=f"--{option}: must not be another program's file"):
                detect_in_process(csv_path, **{option: [name]})
        assert (csv_path.parent / name).read_text(encoding="utf-8") == text
    for _ in range(2):  # results of limpet are overwritten
        assert detect_in_process(csv_path, points=["p.csv", "p.parquet", "p.jsonl", "p.db"], report="p.html")[0] == 0
    with sqlite3.connect("p.db") as database:
        assert database.execute("select count(*) from points").fetchone() == (N,)
    assert len((csv_path.parent / "p.csv").read_text(encoding="utf-8").splitlines()) == N + 1


@pytest.mark.parametrize(("option", "table"), [("alarms", "alarms"), ("points", "points"), ("alarms", "Alarms")])
def test_tables_of_other_programs_in_a_database_are_kept(option, table, csv_path):
    with closing(sqlite3.connect("limpet.db")) as database, database:
        database.execute(f"create table {table} (id integer)")
        database.execute(f"insert into {option} values (7)")
    with pytest.raises(InvalidInputError, match=f"its table {option} must not be another program's"):
        detect_in_process(csv_path, no_report=True, **{option: ["limpet.db"]})
    with closing(sqlite3.connect("limpet.db")) as database:
        assert database.execute(f"select id from {option}").fetchall() == [(7,)]
    other = "points" if option == "alarms" else "alarms"  # a table with another name does not matter
    assert detect_in_process(csv_path, no_report=True, **{other: ["limpet.db"]})[0] == 0


def test_terminal_and_report_have_the_same_most_important_alarms(csv_path):
    alarms = [lp.Alarm("anomaly", row, row, float(row), "up", (0,)) for row in range(5)]
    alarms += [lp.Alarm("change", 9, 9, math.nan, "up", (0,)), lp.Alarm("change", 10, 10, 0.01, "narrower", (0,))]
    assert most_important(alarms, 3) == [4, 5, 6]
    assert most_important(alarms, 1) == [6]
    assert most_important([], 3) == []


def test_short_file_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "short.csv", ["level"], [(value,) for value in LEVELS[:60]])
    assert "too short" in detect_in_process(path, no_report=True)[1]


@pytest.mark.parametrize("setting", ["points", "alarms", "report"])
def test_output_to_the_input_file_raises(setting, csv_path):
    before = csv_path.read_bytes()
    with pytest.raises(InvalidInputError, match=f"--{setting}: must not be the input file"):
        detect_in_process(csv_path, **{setting: "./pump.csv" if setting == "report" else ["./pump.csv"]})
    assert csv_path.read_bytes() == before


def test_malformed_records_are_reported_with_their_reasons(csv_path):
    lines = csv_path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[100:100] = ["broken\n", "2026-03-01 10:01:30,warm,ok\n", "soon,20.0,ok\n"]
    csv_path.write_text("".join(lines), encoding="utf-8")
    code, text = detect_in_process(csv_path, no_report=True)
    assert code == 0
    assert "3 malformed records: 1 not 3 fields, 1 'level' is not a number, 1 no time" in text
    assert "record 99: not 3 fields: broken" in text
    assert "invalid point" not in text


def test_invalid_points_are_counted_apart_from_malformed_records(csv_path, capsys):
    lines = csv_path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[100] = lines[100].partition(",")[0] + ",1e200,ok\n"
    lines[50:50] = ["broken\n"]
    csv_path.write_text("".join(lines), encoding="utf-8")
    assert "1 invalid point: 1 infinite, or beyond 1e150" in detect_in_process(csv_path, no_report=True)[1]
    assert detect_in_process(csv_path, output_format="json", no_report=True)[0] == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["counts"]["malformed"], output["counts"]["invalid"]) == (1, 1)
    assert output["invalid"]["counts"] == {"infinite, or beyond 1e150": 1}


ERRORS = [
    (["nowhere.csv"], "FILE: must exist, got nowhere.csv."),
    (["pump.csv", "--columns", "preasure"], "columns: 'preasure' not found. The columns are time, level, remark."),
    (["pump.csv", "--columns", "remark"], "columns: 'remark' must be numeric, got 'ok'"),
    (["pump.csv", "--key", "sensor"], "'sensor' not found"),
    (["pump.csv", "--time", "when"], "'when' not found"),
    (["pump.csv", "--far", "2"], "far"),
    (["pump.csv", "--late", "maybe"], "--late: must be 'skip' or 'learn', got 'maybe'"),
    (["pump.csv", "--alarms", "alarms.xls"], "must be .jsonl, .csv, .parquet or .db"),
    (["pump.csv", "--report", "nowhere/r.html"], "nowhere/r.html: cannot be written"),
    (["pump.csv", "--max-keys", "10"], "max_keys: "),
    (["."], "FILE: must be a file, got the folder ."),
    (["nats://me:secret@host/level"], "FILE: must be a file, got nats://host/level. `limpet watch URL"),
    (["empty.csv"], "source: must be a non-empty file, got empty.csv."),
    (["words.csv"], "no column is numeric"),
    (["header.csv"], "no records after the header a, b"),
    (["picture.csv"], "source: must be UTF-8 text"),
    ([], "FILE: is missing"),
]


def test_errors_are_one_line(csv_path, capsys, monkeypatch):
    folder = csv_path.parent
    (folder / "empty.csv").write_bytes(b"")
    (folder / "words.csv").write_text("a,b\nx,y\nz,w\n", encoding="utf-8")
    (folder / "header.csv").write_text("a,b\n", encoding="utf-8")
    (folder / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    for words, message in ERRORS:
        code, _, errors = run_in_process(["detect", *words], capsys, monkeypatch)
        assert code == 2, (words, errors)
        assert message in errors, (words, errors)
        assert errors.count("\n") == 1, (words, errors)
    result = run_limpet("detect", "nowhere.csv", cwd=folder)
    assert (result.returncode, result.stderr) == (2, "limpet: FILE: must exist, got nowhere.csv.\n")


def test_configuration_file_equals_flags(csv_path, capsys, monkeypatch):
    (csv_path.parent / "h.toml").write_text(
        'source = "pump.csv"\ncolumns = ["level"]\nfar = 1e-3\nno_report = true\n'
        'output_format = "json"\ncheckpoint_interval = 3\n',
        encoding="utf-8",
    )
    expected = json.loads(run_in_process(["detect", "--config", "h.toml"], capsys, monkeypatch)[1])
    flags = ["--columns", "level", "--far", "1e-3", "--no-report", "--output-format", "json"]
    assert json.loads(run_in_process(["detect", "pump.csv", *flags], capsys, monkeypatch)[1]) == expected
    before = json.loads(run_in_process(["detect", "--config", "h.toml", "--far", "1e-6"], capsys, monkeypatch)[1])
    assert [alarm["row"] for alarm in before["alarms"]] == [alarm.row for alarm in run_learner(far=1e-6).alarms]
