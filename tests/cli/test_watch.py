"""`limpet watch`, `status` and `init`, in separate processes: kills, signals, pipes."""

import doctest
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
from pathlib import Path

import numpy as np
import pytest

import limpet as lp
from harness.nats import SUBJECT, message, publish, running
from harness.watch_process import Watch, compare_runs
from helpers.commands import run_in_process, run_limpet
from limpet.cli import main as commands
from limpet.cli.init import make_config_template
from limpet.cli.options import DETECTOR_PARAMS, read_config
from limpet.cli.spark import score
from limpet.exceptions import InvalidInputError
from limpet.learners.serialization import unpack_container
from limpet.streams.checkpoint_store import StatusFile
from limpet_lab.bench.watch_crash import draw_levels

ROOT = Path(__file__).parents[2]
LEVELS = np.random.default_rng(6).normal(20.0, 0.5, 1200).round(3)
LEVELS[800:] += 3.0
LEVELS[400] = 90.0


@cache
def get_expected_alarms():
    """Return the alarms of LEVELS."""
    return [(alarm.kind, alarm.row) for alarm in lp.Detector().process(LEVELS).alarms]


def make_lines(first=0, last=1200):
    return "".join(f"{i},{LEVELS[i]}\n" for i in range(first, last))


def start_watch(*words, cwd, **more):
    command = [sys.executable, "-m", "limpet", "watch", *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def read_alarms(text):
    return [(alarm["kind"], alarm["row"]) for alarm in map(json.loads, text.splitlines())]


@pytest.fixture(params=["file", "JetStream"])
def source(request, tmp_path):
    """A source of 30,000 levels with occasional changes and outliers."""
    values = draw_levels(30_000)
    if request.param == "file":
        path = tmp_path / "x.csv"
        path.write_text("time,level\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
        yield str(path)
        return
    with running(tmp_path / "nats") as url:
        publish(url, (message(values[i : i + 20], i) for i in range(0, len(values), 20)))
        yield f"{url}/{SUBJECT}"


def test_kill_9_changes_nothing(source, tmp_path):
    whole, killed = Watch(source, tmp_path / "whole"), Watch(source, tmp_path / "killed", checkpoint_interval_s=0.01)
    whole.run()
    assert killed.run_with_kills(2 if source.endswith(".csv") else 1) > 0
    assert all(compare_runs(whole, killed).values()), compare_runs(whole, killed)
    assert len(whole.rows()["points"]) == 30_000
    assert len(whole.rows()["alarms"]) > 2


def test_a_file_that_grows_is_followed_until_a_signal(tmp_path, capsys, monkeypatch):
    source, state, out = tmp_path / "x.csv", tmp_path / "state", tmp_path / "alarms.jsonl"
    source.write_text("time,level\n" + make_lines(0, 500))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--checkpoint", state, "--alarms", out, "--metrics", f"127.0.0.1:{port}", "--log-format", "json"]
    process = start_watch(source, *flags, cwd=tmp_path)
    try:
        wait_until(lambda: out.exists() and len(out.read_text().splitlines()) == 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            metrics = response.read().decode()
        assert "limpet_points_total 500" in metrics
        assert 'limpet_alarms_total{kind="anomaly"} 1' in metrics
        with source.open("a") as file:
            file.write(make_lines(500, 1200))
        wait_until(lambda: len(out.read_text().splitlines()) == len(get_expected_alarms()))
        _, status, _ = run_in_process(["status", state], capsys, monkeypatch)
        assert "running, process" in status
        assert re.search(r"points +[\d,]+", status)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert read_alarms(out.read_text()) == get_expected_alarms()
    entries = [json.loads(line) for line in errors.splitlines()]
    assert all({"time", "level", "message"} <= entry.keys() for entry in entries)
    assert entries[-1]["message"] == f"stopped after 1200 records, {len(get_expected_alarms())} alarms"
    header, _ = unpack_container(max(state.glob("*.limpet")).read_bytes())
    assert header["stats"]["records"] == 1200
    assert "ended, process" in run_in_process(["status", state], capsys, monkeypatch)[1]
    assert (
        json.loads(run_in_process(["status", state, "--output-format", "json"], capsys, monkeypatch)[1])["points"]
        == 1200
    )


def test_standard_input_is_read(tmp_path):
    result = run_limpet("watch", "-", "--output-format", "json", cwd=tmp_path, input="time,level\n" + make_lines())
    assert result.returncode == 0, result.stderr
    assert read_alarms(result.stdout) == get_expected_alarms()
    records = "".join(json.dumps({"time": i, "level": value}) + "\n" for i, value in enumerate(LEVELS.tolist()))
    result = run_limpet("watch", "-", cwd=tmp_path, input=records)
    assert len(result.stdout.splitlines()) == len(get_expected_alarms())
    assert "level up by" in result.stdout


def test_files_of_a_folder_are_read_in_order(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    for nth, first in enumerate(range(0, 1200, 300)):
        (folder / f"{nth}.csv").write_text("time,level\n" + make_lines(first, first + 300))
        os.utime(folder / f"{nth}.csv", (nth, nth))
    words = ["watch", folder, "--no-follow", "--output-format", "json", "--checkpoint", "state"]
    _, output, _ = run_in_process(words, capsys, monkeypatch)
    assert read_alarms(output) == get_expected_alarms()
    assert run_in_process(words, capsys, monkeypatch)[:2] == (0, "")


ERRORS = [
    (["nowhere.csv"], "source: must be an existing file, got nowhere.csv."),
    (["gopher://host/x"], "unknown scheme gopher://"),
    (["x.csv", "--columns", "preasure"], "columns: 'preasure' not found"),
    (["x.csv", "--no-follow", "--alarms", "gopher://host/x"], "unknown scheme gopher://"),
    (["x.csv", "--no-follow", "--points", "http://127.0.0.1:1/x"], "a webhook takes alarms"),
    (["x.csv", "--alarms", "x.csv"], "--alarms: must not be the input file, got x.csv."),
    ([".", "--points", "points.csv"], "--points: must not be in the input folder"),
    (["x.csv", "--checkpoint", "x.csv"], "cannot write to x.csv"),
    (["--config", "wrong.toml"], "wrong.toml: colums: is not an option. Did you mean 'columns'?"),
    (["--config", "none.toml"], "none.toml: cannot be read"),
    ([], "SOURCE: is missing"),
]


def test_errors_are_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    (tmp_path / "wrong.toml").write_text('colums = ["a"]\n')
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        mistakes = [*ERRORS, (["x.csv", "--no-follow", "--metrics", address], "is in use")]
        for words, message in mistakes:
            code, _, errors = run_in_process(["watch", *words], capsys, monkeypatch)
            assert code == 2, (words, errors)
            entries = errors.splitlines()
            assert message in entries[-1], (words, errors)
            assert entries[-1].startswith("limpet: ")
    code, _, errors = run_in_process(["status", "."], capsys, monkeypatch)
    assert (code, "status.json" in errors) == (2, True)
    for payload in ('{"state": "ended", "records": 3}', '{"state": "end', "[]"):
        (tmp_path / "status.json").write_text(payload)
        code, _, errors = run_in_process(["status", "."], capsys, monkeypatch)
        assert (code, "must hold the status of a run of this version" in errors) == (2, True), payload


def test_status_of_a_run_that_has_not_ended_is_crashed(tmp_path, capsys, monkeypatch):
    StatusFile(tmp_path, "x.csv")  # no process holds the lock
    assert "crashed, process" in run_in_process(["status", str(tmp_path)], capsys, monkeypatch)[1]


def test_checkpoint_of_another_source_or_other_columns_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    (tmp_path / "y.csv").write_text("time,level\n" + make_lines())
    flags = ["--no-follow", "--checkpoint", "state", "--alarms", "a.jsonl"]
    assert run_in_process(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
    before = (tmp_path / "a.jsonl").read_bytes()
    for words, reason in (
        (["y.csv", *flags], "source: "),
        (["x.csv", *flags, "--columns", "level"], "columns: "),
        (["x.csv", *flags, "--no-time"], "time: "),
        (["x.csv", *flags, "--far", "1e-3"], "far: "),
    ):
        code, _, errors = run_in_process(["watch", *words], capsys, monkeypatch)
        assert (code, reason in errors.splitlines()[-1]) == (2, True), errors
    assert run_in_process(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
    assert (tmp_path / "a.jsonl").read_bytes() == before


def test_detect_does_not_overwrite_the_results_of_a_watch(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    for name in ("a.jsonl", "a.csv", "a.db"):
        flags = ["--no-follow", "--checkpoint", f"state of {name}", "--alarms", name]
        assert run_in_process(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0
        code, _, errors = run_in_process(["detect", "x.csv", "--no-report", "--alarms", name], capsys, monkeypatch)
        assert (code, "must not be" in errors) == (2, True), errors
        assert run_in_process(["watch", "x.csv", *flags], capsys, monkeypatch)[0] == 0


def test_passwords_are_not_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    for words in (
        ["watch", "natss://me:SECRET@host/x"],
        ["watch", "nats://SECRET@127.0.0.1:1/x", "--no-follow"],
        ["watch", "x.csv", "--no-follow", "--points", "https://me:SECRET@host/SECRET"],
        ["detect", "x.csv", "--alarms", "http://me:SECRET@127.0.0.1:1/SECRET"],
    ):
        _, output, errors = run_in_process(words, capsys, monkeypatch)
        assert "SECRET" not in output + errors, (words, output, errors)
    assert "SECRET" not in (tmp_path / "report.html").read_text(encoding="utf-8")


# The configuration file


def test_init_writes_all_options(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output, _ = run_in_process(["init"], capsys, monkeypatch)
    assert (code, "Set source" in output, "limpet watch --config limpet.toml" in output) == (0, True, True)
    code, _, errors = run_in_process(["init"], capsys, monkeypatch)
    assert (code, "FILE: must not exist, got limpet.toml" in errors) == (2, True)
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
def test_invalid_configurations_raise(line, message, tmp_path):
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
def test_values_of_a_configuration_are_validated_like_flags(line, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(f'source = "x.csv"\n{line}\n')
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    code, _, errors = run_in_process(["watch", "--config", "x.toml", "--no-follow"], capsys, monkeypatch)
    assert code == 2
    assert errors.splitlines()[-1].startswith(f"limpet: {message}")


def test_flags_precede_the_environment_and_the_environment_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time,level\n" + make_lines())
    (tmp_path / "x.toml").write_text('output_format = "text"\nfollow = false\n')
    words = ["watch", "x.csv", "--config", "x.toml"]
    assert "level" in run_in_process(words, capsys, monkeypatch)[1]
    monkeypatch.setenv("LIMPET_WATCH_OUTPUT_FORMAT", "json")
    assert read_alarms(run_in_process(words, capsys, monkeypatch)[1]) == get_expected_alarms()
    assert "level" in run_in_process([*words, "--output-format", "text"], capsys, monkeypatch)[1]


def test_defaults_in_the_help_equal_those_of_the_learners():
    options = inspect.signature(commands.detect, eval_str=True).parameters
    for learner, names in ((lp.Detector, ("n_components", *DETECTOR_PARAMS)), (lp.SRA, ("norm",))):
        defaults = inspect.signature(learner).parameters
        for name in names:
            assert options[name].annotation.__metadata__[0].show_default == str(defaults[name].default)


@pytest.fixture
def guide_packages(tmp_path):
    """The source and the sink of CONTRIBUTING.md as installed packages; returns the environment that finds them."""
    examples = doctest.DocTestParser().get_examples((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for kind, group, class_name, scheme in (
        ("count", "sources", "CountSource", "count"),
        ("lines", "sinks", "LineSink", "lines"),
    ):
        (code,) = (each.source for each in examples if each.source.startswith(f"class {class_name}"))
        imports = (each.source for each in examples if each.source.startswith(("import", "from limpet", "from url")))
        (tmp_path / f"limpet_{kind}.py").write_text("".join(imports) + code)
        info = tmp_path / f"limpet_{kind}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: limpet-{kind}\nVersion: 1.0\n")
        entry_point = f"{scheme} = limpet_{kind}:{class_name}.from_url"
        (info / "entry_points.txt").write_text(f"[limpet.{group}]\n{entry_point}\n")
    return os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "200"}


def watch_as_installed(*words, cwd, env):
    command = [sys.executable, "-m", "limpet", "watch", *words, "--no-follow"]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_source_and_sink_of_the_contributors_guide(guide_packages, tmp_path):
    kept = ["--alarms", "lines://alarms.txt", "--checkpoint", "state"]
    done = watch_as_installed("count://3000?every=1", *kept, cwd=tmp_path, env=guide_packages)
    assert done.returncode == 0, done.stderr
    assert "ended after 3000 records" in done.stderr
    lines = (tmp_path / "alarms.txt").read_text()
    assert "change since row" in lines
    again = watch_as_installed("count://3000?every=1", *kept, cwd=tmp_path, env=guide_packages)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "alarms.txt").read_text() == lines
    other = watch_as_installed("count://3000?every=2", *kept, cwd=tmp_path, env=guide_packages)
    assert other.returncode == 2
    assert "source: the checkpoint has count://3000?" in other.stderr
    points = watch_as_installed("count://3000", "--points", "lines://points.txt", cwd=tmp_path, env=guide_packages)
    assert points.returncode == 2
    assert "table" in points.stderr


def test_unexpected_error_exits_with_70_and_not_with_the_code_of_alarms(guide_packages, tmp_path):
    done = watch_as_installed("count://many", cwd=tmp_path, env=guide_packages)
    assert done.returncode == 70
    assert "ValueError" in done.stderr
