"""The commands, run as a user runs them."""

import json
import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.benchmarks import USUAL
from holdfast.benchmarks.figure import Figure


def holdfast(*words, cwd=None):
    command = [sys.executable, "-m", "holdfast", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_help_names_the_commands():
    result = holdfast("--help")
    assert result.returncode == 0
    for command in ("demo", "tradeoff", "bench"):
        assert command in result.stdout
    assert holdfast("--version").stdout == f"holdfast {__version__}\n"


def test_demo_writes_a_report(tmp_path):
    result = holdfast("demo", "--out", str(tmp_path / "r.html"))
    assert result.returncode == 0, result.stderr
    assert "dropped" in result.stdout.lower()
    assert (tmp_path / "r.html").stat().st_size > 50_000


def test_tradeoff_prints_the_table_and_draws(tmp_path):
    result = holdfast("tradeoff", "--gamma", "1,3", "--gamma", "inf", "--beta", "0.1", "--M", "5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "0.01163" in result.stdout
    assert "Least bound" in result.stdout
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
def test_mistakes_are_told_in_one_line(words, message, tmp_path):
    result = holdfast(*words, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_bench_runs_quickly_and_writes_its_figures(tmp_path):
    """Whether the goals are reached depends on the machine and is no matter for a test; that they are measured is."""
    result = holdfast("bench", "--quick", "--json", str(tmp_path / "bench.json"))
    assert result.returncode in (0, 1), result.stderr
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert set(USUAL) <= set(figures)
    for name in USUAL:
        assert len(figures[name]) > 3
        assert all(figure["value"] == figure["value"] for figure in figures[name])
    names = {figure["name"] for figure in figures["speed"]}
    assert {
        "process, d=1, whitened: ratio",
        "process, d=3, whitened: ratio",
        "update(x), whitened: ratio",
    } <= names


def test_a_figure_knows_whether_its_goal_is_reached():
    assert Figure("a", 1.0, "s", 2.0).reached
    assert not Figure("a", 3.0, "s", 2.0).reached
    assert Figure("a", 3.0).reached
