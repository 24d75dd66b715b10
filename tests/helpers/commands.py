"""The command line, run as a user runs it: in a process of its own, or here where that takes too long."""

import io
import logging
import os
import signal
import subprocess
import sys
import warnings

import typer
from rich.console import Console

from limpet.cli.config import validate_options
from limpet.cli.detect import run_detect
from limpet.cli.main import main
from limpet.cli.options import DETECT_COMMAND, get_options


def limpet(*words, cwd=None, **more):
    """The command in a process of its own, on a terminal of 80 columns."""
    command = [sys.executable, "-m", "limpet", *map(str, words)]
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more)


def here(words, capsys, monkeypatch):
    """The command in this process, which is quicker: (exit code, standard output, standard error)."""
    monkeypatch.setattr(sys, "argv", ["limpet", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "80")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    shown = warnings.showwarning
    try:
        main()
        code = 0
    except SystemExit as left:
        code = left.code
    finally:
        warnings.showwarning = shown
        logging.getLogger("limpet").handlers[:] = []
        logging.getLogger("limpet").propagate = True
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, *capsys.readouterr()


def detect(path, **settings):
    """`limpet detect` in this process: its exit code, and what it prints."""
    values = {one.name: one.default for one in get_options(DETECT_COMMAND)} | settings
    console = Console(file=io.StringIO(), width=100)
    try:
        run_detect(str(path), validate_options(values), console)
    except typer.Exit as left:
        return left.exit_code, console.file.getvalue()
    return 0, console.file.getvalue()
