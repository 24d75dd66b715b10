"""Test `limpet bench`: the list of benchmarks, what they print and write."""

import inspect
import io
import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from rich.console import Console

import limpet as lp
from helpers.commands import run_in_process, run_limpet
from helpers.scripts import ROOT, import_script
from limpet_lab.bench import BENCHMARKS, DEFAULT_BENCHMARKS, detect, speed, startup
from limpet_lab.bench._measurement import Figure, format_lines
from limpet_lab.bench.runner import run_benchmarks


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bench", "speed", "--json", "nowhere/b.json"), "--json"),
        (("bench", "everything"), "NAME"),
    ],
)
def test_invalid_arguments_are_reported_without_a_traceback(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run_in_process(words, capsys, monkeypatch)
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors


def test_quick_benchmark_writes_its_figures(tmp_path, capsys, monkeypatch):
    code, output, errors = run_in_process(
        ["bench", "speed", "--quick", "--json", tmp_path / "bench.json"], capsys, monkeypatch
    )
    assert code == 0, errors
    assert "Quick run" in output
    figures = json.loads((tmp_path / "bench.json").read_text())
    names = {figure["name"] for figure in figures["speed"]}
    assert {
        "process, d=1, whitened: ratio",
        "process, d=3, whitened: ratio",
        "update(x), whitened: ratio",
    } <= names


@pytest.mark.long
def test_default_benchmarks_run_with_quick(tmp_path):
    result = run_limpet("bench", "--quick", "--json", str(tmp_path / "bench.json"))
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert set(DEFAULT_BENCHMARKS) <= set(figures)
    for name in DEFAULT_BENCHMARKS:
        assert len(figures[name]) > 3
        assert all(figure["value"] == figure["value"] for figure in figures[name])


def test_figure_reports_whether_its_goal_is_reached():
    assert Figure("a", 1.0, "s", 2.0).is_reached
    assert not Figure("a", 3.0, "s", 2.0).is_reached
    assert Figure("a", 3.0).is_reached
    assert Figure("a", 3.0, "s", 2.0).without_goal().is_reached


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *[
            (2880, "2880"),
            (1e6, "1000000"),
            (10_000_001, "1e+07"),
            (999.7, "1000"),
            (3082.4, "3082"),
            (-2880.0, "-2880"),
        ],
        *[(128, "128"), (7, "7"), (0, "0"), (0.27812, "0.278"), (float("nan"), "nan"), (float("inf"), "inf")],
    ],
)
def test_values_of_figures_are_formatted(value, shown):
    assert Figure("state", value, "bytes").text == f"{shown} bytes"
    assert Figure("state", 1.0, "", 1e6, 0.25).goal_text == "≥ 0.25, ≤ 1000000"


# What benchmarks there are


def test_help_lists_every_benchmark_with_its_summary():
    listed = [line.strip() for line in run_limpet("bench", "--help").stdout.splitlines()]
    for name, summary in BENCHMARKS.items():
        assert any(re.fullmatch(rf"{name} +{re.escape(summary)}", line) for line in listed), name
        assert find_spec(f"limpet_lab.bench.{name}")


def test_readme_of_the_lab_lists_every_benchmark():
    text = (ROOT / "lab" / "README.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^    limpet bench (\w+) +# (.*)$", text, re.M)) == BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_title_and_a_measure_function(name):
    pytest.importorskip("river")
    module = import_module(f"limpet_lab.bench.{name}")
    assert module.TITLE
    assert next(iter(inspect.signature(module.measure).parameters)) == "quick"


@pytest.mark.parametrize("name", ["auto_latency", "robustness"])
def test_default_learner_of_a_benchmark_is_a_detector(name):
    measure = import_module(f"limpet_lab.bench.{name}").measure
    make_learner = inspect.signature(measure).parameters["make_learner"].default
    assert isinstance(make_learner(), lp.Detector)
    assert make_learner(2).n_components == 2


# Programs of benchmarks in strings, which no type checker reads


def test_read_script_counts_all_rows(tmp_path):
    for kind in detect.HEADER_LINES:
        detect.write_rows(tmp_path / "x.csv", kind, 300)
        command = [sys.executable, "-c", detect.READ_SCRIPT, str(tmp_path / "x.csv")]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "300\n"


def test_first_call_script_reports_time_and_compilations():
    seconds, compilations, _ = startup.time_first_call(startup.SRA_CODE, {})
    assert seconds > 0.0
    assert compilations >= 0


# What they print


def run_speed_benchmark(monkeypatch, quick, path=None):
    """Run the benchmark of speed with given figures; return whether all goals were reached, and the output."""
    figures = [Figure("states: full", 2880, "bytes", 3000), Figure("states: compact", 640, "bytes", 512)]
    monkeypatch.setattr(speed, "measure", lambda quick: figures)
    console = Console(file=io.StringIO(), width=80)
    return run_benchmarks(["speed"], quick, path, console), console.file.getvalue()


def test_a_quick_run_has_no_goals(monkeypatch, tmp_path):
    reached, text = run_speed_benchmark(monkeypatch, True, tmp_path / "b.json")
    assert reached
    assert "Quick run" in text
    assert not set("✓✗≤≥") & set(text)
    assert "2880 bytes" in text
    assert all(
        figure["reached"] and figure["at_most"] is None
        for figure in json.loads((tmp_path / "b.json").read_text())["speed"]
    )
    reached, text = run_speed_benchmark(monkeypatch, False)
    assert not reached
    assert "Quick run" not in text
    assert text.count("✓") == text.count("✗") == 1


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("goals", [True, False])
def test_printed_figures_fit_80_columns(name, goals):
    figures = import_script("page_tools").load_figures(name).values()
    printed = list(format_lines([figure if goals else figure.without_goal() for figure in figures], 80))
    assert max(map(len, printed)) <= 80
    text = "\n".join(printed)
    for figure in figures:
        head, _, rest = figure.name.partition(": ")
        assert figure.text in text
        assert figure.name in text or (head in text and f"\n  {rest}" in text)
