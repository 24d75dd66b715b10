"""The commands as a user runs them."""

from pathlib import Path

import pytest

from helpers.commands import run_in_process, run_limpet
from limpet import __version__
from limpet.cli.options import OPTIONS_BY_COMMAND, read_duration


def test_help_names_the_commands():
    result = run_limpet("--help")
    assert result.returncode == 0
    for command in ("detect", "watch", "status", "init", "demo", "tradeoff", "bench"):
        assert command in result.stdout
    assert run_limpet("--version").stdout == f"limpet {__version__}\n"


def test_demo_writes_a_report(tmp_path):
    result = run_limpet("demo", "--out", str(tmp_path / "r.html"))
    assert result.returncode == 0, result.stderr
    assert "rejected" in result.stdout.lower()
    assert (tmp_path / "r.html").stat().st_size > 50_000


def test_tradeoff_prints_a_table_and_draws_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["tradeoff", "--gamma", "1,3", "--gamma", "inf", "--beta", "0.1", "--M", "5"]
    code, output, errors = run_in_process(words, capsys, monkeypatch)
    assert code == 0, errors
    assert "0.01163" in output
    assert "Smallest bound" in output
    assert (tmp_path / "tradeoff.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tradeoff", "--gamma", "three"), "--gamma: must be numbers"),
        (("tradeoff", "--gamma", "-1"), "--gamma: must be between 1e-100 and 1e100, or inf"),
        (("tradeoff", "--gamma", "1e-300,1e300"), "--gamma: must be between 1e-100 and 1e100, or inf"),
        (("tradeoff", "--out", "picture.xyz"), "--out: must end in .png"),
        (("tradeoff", "--alpha", "2"), "alpha"),
        (("tradeoff", "--out", "nowhere/at/all.png"), "--out: must be in an existing folder"),
        (("demo", "--out", "nowhere/at/all.html"), "nowhere"),
        (("detect", "x.csv", "--far", "small"), "--far: "),
        (("serve", "--retain-point", "500"), "--retain-points"),
        (("detcet", "x.csv"), "detcet"),
    ],
)
def test_errors_are_one_line(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run_in_process(words, capsys, monkeypatch)
    assert code == 2
    assert message in errors
    assert errors.startswith("limpet: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(("text", "seconds"), [("10", 10.0), ("10s", 10.0), ("1.5 min", 90.0)])
def test_durations_are_in_seconds(text, seconds):
    assert read_duration(None, None, text) == seconds


def test_options_have_types_that_typer_supports():
    kinds = {
        option.kind
        for options in OPTIONS_BY_COMMAND.values()
        for option in options.values()
        if option.kind != list[str]
    }
    assert kinds == {bool, int, float, str, Path}
