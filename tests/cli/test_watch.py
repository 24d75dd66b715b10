"""`limpet watch`, `status` and `init`, in separate processes: kills, signals, pipes."""

import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from functools import cache

import numpy as np
import pytest

import limpet as lp
from harness.nats import SUBJECT, message, publish, running
from harness.watch_process import Watch, same
from helpers.commands import here, limpet
from limpet.cli import main as commands
from limpet.cli.init import make_config_template
from limpet.cli.options import DETECTOR_PARAMS, read_config
from limpet.cli.spark import score
from limpet.exceptions import InvalidInputError
from limpet.learners.serialization import unpack_container
from limpet_lab.bench.watch_crash import stream

LEVEL = np.random.default_rng(6).normal(20.0, 0.5, 1200).round(3)
LEVEL[800:] += 3.0
LEVEL[400] = 90.0


@cache
def expected():
    """The alarms of LEVEL."""
    return [(alarm.kind, alarm.row) for alarm in lp.Detector().process(LEVEL).alarms]


def lines(first=0, last=1200):
    return "".join(f"{i},{LEVEL[i]}\n" for i in range(first, last))


def start(*words, cwd, **more):
    command = [sys.executable, "-m", "limpet", "watch", *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def wait_for(happened, seconds=30.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def alarms_in(text):
    return [(alarm["kind"], alarm["row"]) for alarm in map(json.loads, text.splitlines())]


@pytest.fixture(params=["file", "JetStream"])
def source(request, tmp_path):
    """A source of 30,000 levels that change now and then, with outliers."""
    values = stream(30_000)
    if request.param == "file":
        path = tmp_path / "x.csv"
        path.write_text("time,level\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
        yield str(path)
        return
    with running(tmp_path / "nats") as url:
        publish(url, (message(values[i : i + 20], i) for i in range(0, len(values), 20)))
        yield f"{url}/{SUBJECT}"


def test_kill_9_changes_nothing(source, tmp_path):
    whole, killed = Watch(source, tmp_path / "whole"), Watch(source, tmp_path / "killed", every=0.01)
    whole.run()
    assert killed.run_with_kills(2 if source.endswith(".csv") else 1) > 0
    assert all(same(whole, killed).values()), same(whole, killed)
    assert len(whole.rows()["points"]) == 30_000
    assert len(whole.rows()["alarms"]) > 2


def test_a_file_that_grows_is_followed_until_a_signal(tmp_path, capsys, monkeypatch):
    source, state, out = tmp_path / "x.csv", tmp_path / "state", tmp_path / "alarms.jsonl"
    source.write_text("time,level\n" + lines(0, 500))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--checkpoint", state, "--alarms", out, "--metrics", f"127.0.0.1:{port}", "--log-format", "json"]
    process = start(source, *flags, cwd=tmp_path)
    try:
        wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            metrics = response.read().decode()
        assert "limpet_points_total 500" in metrics
        assert 'limpet_alarms_total{kind="anomaly"} 1' in metrics
        with source.open("a") as file:
            file.write(lines(500, 1200))
        wait_for(lambda: len(out.read_text().splitlines()) == len(expected()))
        _, status, _ = here(["status", state], capsys, monkeypatch)
        assert "running, process" in status
        assert re.search(r"points +[\d,]+", status)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert alarms_in(out.read_text()) == expected()
    entries = [json.loads(line) for line in errors.splitlines()]
    assert all({"time", "level", "message"} <= entry.keys() for entry in entries)
    assert entries[-1]["message"] == f"stopped after 1200 records, {len(expected())} alarms"
    header, _ = unpack_container(max(state.glob("*.limpet")).read_bytes())
    assert header["stats"]["records"] == 1200
    assert "ended, process" in here(["status", state], capsys, monkeypatch)[1]
    assert json.loads(here(["status", state, "--output-format", "json"], capsys, monkeypatch)[1])["points"] == 1200


def test_what_is_piped_in(tmp_path):
    result = limpet("watch", "-", "--output-format", "json", cwd=tmp_path, input="time,level\n" + lines())
    assert result.returncode == 0, result.stderr
    assert alarms_in(result.stdout) == expected()
    records = "".join(json.dumps({"time": i, "level": value}) + "\n" for i, value in enumerate(LEVEL.tolist()))
    result = limpet("watch", "-", cwd=tmp_path, input=records)
    assert len(result.stdout.splitlines()) == len(expected())
    assert "level up by" in result.stdout


def test_a_folder_that_files_are_dropped_into(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    for nth, first in enumerate(range(0, 1200, 300)):
        (folder / f"{nth}.csv").write_text("time,level\n" + lines(first, first + 300))
        os.utime(folder / f"{nth}.csv", (nth, nth))
    words = ["watch", folder, "--no-follow", "--output-format", "json", "--checkpoint", "state"]
    _, output, _ = here(words, capsys, monkeypatch)
    assert alarms_in(output) == expected()
    assert here(words, capsys, monkeypatch)[:2] == (0, "")


MISTAKES = [
    (["nowhere.csv"], "nowhere.csv: no such file"),
    (["gopher://host/x"], "unknown scheme gopher://"),
    (["x.csv", "--columns", "preasure"], "columns: 'preasure' not found"),
    (["x.csv", "--no-follow", "--alarms", "gopher://host/x"], "unknown scheme gopher://"),
    (["x.csv", "--no-follow", "--points", "http://127.0.0.1:1/x"], "a web hook takes alarms"),
    (["x.csv", "--alarms", "x.csv"], "is the input file"),
    ([".", "--points", "points.csv"], "is in the input directory"),
    (["x.csv", "--checkpoint", "x.csv"], "cannot write to x.csv"),
    (["--config", "wrong.toml"], "wrong.toml: colums: is not an option. Did you mean 'columns'?"),
    (["--config", "none.toml"], "none.toml: cannot be read"),
    ([], "SOURCE: is missing"),
]


def test_errors_are_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    (tmp_path / "wrong.toml").write_text('colums = ["a"]\n')
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        mistakes = [*MISTAKES, (["x.csv", "--no-follow", "--metrics", address], "is in use")]
        for words, message in mistakes:
            code, _, errors = here(["watch", *words], capsys, monkeypatch)
            assert code == 2, (words, errors)
            entries = errors.splitlines()
            assert message in entries[-1], (words, errors)
            assert entries[-1].startswith("limpet: ")
    code, _, errors = here(["status", "."], capsys, monkeypatch)
    assert (code, "status.json" in errors) == (2, True)
    for payload in ('{"state": "ended", "records": 3}', '{"state": "end', "[]"):
        (tmp_path / "status.json").write_text(payload)
        code, _, errors = here(["status", "."], capsys, monkeypatch)
        assert (code, "must hold the status of a run of this version" in errors) == (2, True), payload


def test_a_checkpoint_is_of_one_source_and_its_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    (tmp_path / "y.csv").write_text("time,level\n" + lines())
    flags = ["--no-follow", "--checkpoint", "state", "--alarms", "a.jsonl"]
    assert here(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
    before = (tmp_path / "a.jsonl").read_bytes()
    for words, reason in (
        (["y.csv", *flags], "source: "),
        (["x.csv", *flags, "--columns", "level"], "columns: "),
        (["x.csv", *flags, "--no-time"], "time: "),
        (["x.csv", *flags, "--far", "1e-3"], "far: "),
    ):
        code, _, errors = here(["watch", *words], capsys, monkeypatch)
        assert (code, reason in errors.splitlines()[-1]) == (2, True), errors
    assert here(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
    assert (tmp_path / "a.jsonl").read_bytes() == before


def test_detect_leaves_the_results_of_a_watch_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    for name in ("a.jsonl", "a.csv", "a.db"):
        flags = ["--no-follow", "--checkpoint", f"state of {name}", "--alarms", name]
        assert here(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
        code, _, errors = here(["detect", "x.csv", "--no-report", "--alarms", name], capsys, monkeypatch)
        assert (code, "belong" in errors) == (2, True), errors
        assert here(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0


def test_passwords_are_not_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    for words in (
        ["watch", "natss://me:SECRET@host/x"],
        ["watch", "nats://SECRET@127.0.0.1:1/x", "--no-follow"],
        ["watch", "x.csv", "--no-follow", "--points", "https://me:SECRET@host/SECRET"],
        ["detect", "x.csv", "--alarms", "http://me:SECRET@127.0.0.1:1/SECRET"],
    ):
        _, output, errors = here(words, capsys, monkeypatch)
        assert "SECRET" not in output + errors, (words, output, errors)
    assert "SECRET" not in (tmp_path / "report.html").read_text(encoding="utf-8")


# The configuration file


def test_init_writes_every_setting(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert here(["init"], capsys, monkeypatch)[0] == 0
    code, _, errors = here(["init"], capsys, monkeypatch)
    assert (code, "limpet.toml: exists" in errors) == (2, True)
    text = (tmp_path / "limpet.toml").read_text(encoding="utf-8")
    assert text == make_config_template()
    assert tomllib.loads(text) == {}
    uncommented = re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.MULTILINE)
    (tmp_path / "all.toml").write_text(uncommented, encoding="utf-8")
    shared, spark = read_config(tmp_path / "all.toml")
    local = [inspect.signature(command).parameters for command in (commands.detect, commands.watch, commands.serve)]
    assert shared.keys() == {name for parameters in local for name in parameters} - {"config"}
    names = inspect.signature(score).parameters.keys() - {"config"}
    assert spark.keys() <= names <= spark.keys() | shared.keys()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('far = "small"', "far: must be a number"),
        ("columns = [1]", "columns: must be a list of strings"),
        ("season = 1.5", "season: must be an integer"),
        ('follow = "yes"', "follow: must be true or false"),
        ("source = [7]", "source: must be a string"),
        ("colums = 7", "colums: is not an option. Did you mean 'columns'"),
        ("far = ", "must be TOML"),
    ],
)
def test_invalid_configurations_are_refused(line, message, tmp_path):
    (tmp_path / "x.toml").write_text(line)
    with pytest.raises(InvalidInputError, match=message):
        read_config(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("far = 2", "x.toml: far: must be a number of at least 1e-12 and at most 0.1, got 2.0."),
        ('late = "never"', "x.toml: late: must be 'skip' or 'learn', got 'never'."),
        ('checkpoint_interval = "soon"', "x.toml: checkpoint_interval: must be seconds, or a duration"),
        ("gamma = 3.0", "--gamma: requires --learner sra."),
    ],
)
def test_values_of_a_configuration_are_checked_like_flags(line, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(f'source = "x.csv"\n{line}\n')
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    code, _, errors = here(["watch", "--config", "x.toml", "--no-follow"], capsys, monkeypatch)
    assert code == 2
    assert errors.splitlines()[-1].startswith(f"limpet: {message}")


def test_flags_precede_the_environment_and_the_environment_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + lines())
    (tmp_path / "x.toml").write_text('output_format = "text"\nfollow = false\n')
    words = ["watch", "x.csv", "--config", "x.toml"]
    assert "level" in here(words, capsys, monkeypatch)[1]
    monkeypatch.setenv("LIMPET_WATCH_OUTPUT_FORMAT", "json")
    assert alarms_in(here(words, capsys, monkeypatch)[1]) == expected()
    assert "level" in here([*words, "--output-format", "text"], capsys, monkeypatch)[1]


def test_the_defaults_in_the_help_are_those_of_the_learners():
    options = inspect.signature(commands.detect, eval_str=True).parameters
    for learner, names in ((lp.Detector, ("n_components", *DETECTOR_PARAMS)), (lp.SRA, ("norm",))):
        defaults = inspect.signature(learner).parameters
        for name in names:
            assert options[name].annotation.__metadata__[0].show_default == str(defaults[name].default)
