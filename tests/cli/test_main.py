"""The commands, run as a user runs them."""

import io
import json
import re
from importlib.util import find_spec

import pytest
from rich.console import Console

from helpers.commands import here, limpet
from helpers.scripts import ROOT
from limpet import __version__
from limpet_lab.bench import BENCHMARKS, DEFAULT_BENCHMARKS, speed
from limpet_lab.bench._measurement import Figure, lines
from limpet_lab.bench.runner import run_benchmarks


def test_help_names_the_commands():
    result = limpet("--help")
    assert result.returncode == 0
    for command in ("detect", "watch", "status", "init", "demo", "tradeoff", "bench"):
        assert command in result.stdout
    assert limpet("--version").stdout == f"limpet {__version__}\n"


def test_demo_writes_a_report(tmp_path):
    result = limpet("demo", "--out", str(tmp_path / "r.html"))
    assert result.returncode == 0, result.stderr
    assert "rejected" in result.stdout.lower()
    assert (tmp_path / "r.html").stat().st_size > 50_000


def test_tradeoff_prints_the_table_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["tradeoff", "--gamma", "1,3", "--gamma", "inf", "--beta", "0.1", "--M", "5"]
    code, said, errors = here(words, capsys, monkeypatch)
    assert code == 0, errors
    assert "0.01163" in said
    assert "Least bound" in said
    assert (tmp_path / "tradeoff.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tradeoff", "--gamma", "three"), "--gamma takes numbers"),
        (("tradeoff", "--gamma", "-1"), "--gamma must be positive"),
        (("tradeoff", "--gamma", "1e-300,1e300"), "--gamma must be positive"),
        (("tradeoff", "--out", "picture.xyz"), "must be a .png"),
        (("bench", "speed", "--json", "nowhere/b.json"), "there is no folder"),
        (("tradeoff", "--alpha", "2"), "alpha"),
        (("tradeoff", "--out", "nowhere/at/all.png"), "there is no folder"),
        (("bench", "everything"), "no benchmark is called everything"),
        (("demo", "--out", "nowhere/at/all.html"), "nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = here(words, capsys, monkeypatch)
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors


def test_a_benchmark_runs_quickly_and_writes_its_figures(tmp_path, capsys, monkeypatch):
    code, said, errors = here(["bench", "speed", "--quick", "--json", tmp_path / "bench.json"], capsys, monkeypatch)
    assert code == 0, errors
    assert "A taste" in said
    figures = json.loads((tmp_path / "bench.json").read_text())
    names = {figure["name"] for figure in figures["speed"]}
    assert {
        "process, d=1, whitened: ratio",
        "process, d=3, whitened: ratio",
        "update(x), whitened: ratio",
    } <= names


@pytest.mark.long
def test_all_usual_benchmarks_run_quickly(tmp_path):
    result = limpet("bench", "--quick", "--json", str(tmp_path / "bench.json"))
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert set(DEFAULT_BENCHMARKS) <= set(figures)
    for name in DEFAULT_BENCHMARKS:
        assert len(figures[name]) > 3
        assert all(figure["value"] == figure["value"] for figure in figures[name])


def test_a_figure_knows_whether_its_goal_is_reached():
    assert Figure("a", 1.0, "s", 2.0).reached
    assert not Figure("a", 3.0, "s", 2.0).reached
    assert Figure("a", 3.0).reached
    assert Figure("a", 3.0, "s", 2.0).without_goal().reached


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
def test_whole_numbers_are_shown_as_such(value, shown):
    assert Figure("state", value, "bytes").text == f"{shown} bytes"
    assert Figure("state", 1.0, "", 1e6, 0.25).goal_text == "≥ 0.25, ≤ 1000000"


# What benchmarks there are


def test_help_lists_every_benchmark_with_a_line():
    told = [line.strip() for line in limpet("bench", "--help").stdout.splitlines()]
    for name, line in BENCHMARKS.items():
        assert any(re.fullmatch(rf"{name} +{re.escape(line)}", one) for one in told), name
        assert find_spec(f"limpet_lab.bench.{name}")


def test_the_readme_of_benchmarks_lists_them_too():
    text = (ROOT / "lab" / "pages" / "README.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^    limpet bench (\w+) +# (.*)$", text, re.M)) == BENCHMARKS


# What they print


def run_speed(monkeypatch, quick, path=None):
    """The benchmark of speed, with figures at hand: whether all goals were reached, and what is printed."""
    figures = [Figure("states: full", 2880, "bytes", 3000), Figure("states: lean", 640, "bytes", 512)]
    monkeypatch.setattr(speed, "measure", lambda quick: figures)
    console = Console(file=io.StringIO(), width=80)
    return run_benchmarks(["speed"], quick, path, console), console.file.getvalue()


def test_a_taste_has_no_goals_and_says_that_it_is_one(monkeypatch, tmp_path):
    reached, text = run_speed(monkeypatch, True, tmp_path / "b.json")
    assert reached
    assert "A taste" in text
    assert not set("✓✗≤≥") & set(text)
    assert "2880 bytes" in text
    assert all(
        one["reached"] and one["at_most"] is None for one in json.loads((tmp_path / "b.json").read_text())["speed"]
    )
    reached, text = run_speed(monkeypatch, False)
    assert not reached
    assert "taste" not in text
    assert text.count("✓") == text.count("✗") == 1


@pytest.mark.parametrize("run", ["results", "autopilot", "runtime"])
@pytest.mark.parametrize("goals", [True, False])
def test_no_line_is_broken_on_a_narrow_screen(run, goals):
    results = json.loads((ROOT / "lab" / "pages" / f"{run}.json").read_text(encoding="utf-8"))
    for name in BENCHMARKS.keys() & results.keys():
        fields = ("name", "value", "unit", "at_most", "at_least")
        figures = [Figure(*(one.get(field) for field in fields)) for one in results[name]]
        printed = list(lines(figures if goals else [figure.without_goal() for figure in figures], 80))
        assert max(map(len, printed)) <= 80
        told = "\n".join(printed)
        for figure in figures:
            head, _, rest = figure.name.partition(": ")
            assert figure.text in told
            assert figure.name in told or (head in told and f"\n  {rest}" in told)
