"""Run the command line as a user runs it: in a process, or in this one, which is quicker."""

import inspect
import io
import logging
import os
import signal
import subprocess
import sys
import warnings

import typer
from rich.console import Console

from limpet.cli import main as commands
from limpet.cli.detect import run_detect


def run_limpet(*words, cwd=None, **more):
    """Run the command in a process, on a terminal of 80 columns."""
    command = [sys.executable, "-m", "limpet", *map(str, words)]
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more)


def run_in_process(words, capsys, monkeypatch):
    """Run the command in this process; return its exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["limpet", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "80")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    show_warning = warnings.showwarning
    try:
        commands.main()
    except SystemExit as exit:
        code = exit.code or 0
    finally:
        warnings.showwarning = show_warning
        logging.getLogger("limpet").handlers[:] = []
        logging.getLogger("limpet").propagate = True
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, *capsys.readouterr()


def detect_in_process(path, **settings):
    """Run `limpet detect` in this process; return its exit code, and what it prints."""
    parameters = inspect.signature(commands.detect).parameters.values()
    values = {parameter.name: parameter.default for parameter in parameters} | {"columns": []} | settings
    console = Console(file=io.StringIO(), width=100)
    try:
        run_detect(str(path), values, console)
    except typer.Exit as exit:
        return exit.exit_code, console.file.getvalue()
    return 0, console.file.getvalue()
