"""Count the files of limpet through which a point passes.

    python tests/harness/count_files.py post      POST /streams/{key}/points with one float, until it is stored
    python tests/harness/count_files.py detect    `limpet detect` of a CSV file

Counts the distinct files in which a Python function is called, in all threads, after a first run has imported and
compiled everything. Prints the number and the files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import limpet

PACKAGE = Path(limpet.__file__).parent
IDLE_S = 0.6  # after the response, for the rest of a cycle of the writer thread


@contextlib.contextmanager
def recorded_files() -> Iterator[set[str]]:
    """Record the files of limpet in which functions are called."""
    files: set[str] = set()
    prefix = str(PACKAGE)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix) and code.co_name != "<module>":
            files.add(code.co_filename)

    threading.setprofile_all_threads(profile) if hasattr(threading, "setprofile_all_threads") else None
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        if hasattr(threading, "setprofile_all_threads"):
            threading.setprofile_all_threads(None)


def count_post(folder: Path) -> set[str]:
    """Return the files that a posted float passes through."""
    from fastapi.testclient import TestClient

    from limpet.server.app import make_app
    from limpet.server.monitor import MonitorConfig

    with recorded_files() as files:  # before the threads of the server start
        app = make_app(MonitorConfig(str(folder / "store.db"), limpet.Detector(), checkpoint_interval_s=3600.0))
        with TestClient(app, base_url="http://localhost") as client:
            values = np.random.default_rng(0).normal(size=300).tolist()
            client.post("/streams/a/points", json=values).raise_for_status()
            for value in values[:40]:
                client.post("/streams/a/points", json=value).raise_for_status()
            time.sleep(30.0)  # the warm-up thread has finished
            files.clear()
            client.post("/streams/a/points", json=0.3).raise_for_status()
            time.sleep(IDLE_S)
            return set(files)


def count_detect(folder: Path) -> set[str]:
    """Return the files that `limpet detect` uses."""
    from typer.main import get_command

    from limpet.cli.main import app

    path = folder / "points.csv"
    values = np.random.default_rng(0).normal(20.0, 0.5, 2000)
    path.write_text("time,flow\n" + "".join(f"{i},{value:.3f}\n" for i, value in enumerate(values)))
    command = get_command(app)
    for _ in range(2):
        with recorded_files() as files, contextlib.redirect_stdout(io.StringIO()):
            command(["detect", str(path)], standalone_mode=False)
    return files


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", choices=["post", "detect"], help="the path to count")
    kind = parser.parse_args().path
    with tempfile.TemporaryDirectory() as name:
        files = {"post": count_post, "detect": count_detect}[kind](Path(name))
    print(len(files))
    print(*sorted(str(Path(file).relative_to(PACKAGE)) for file in files), sep="\n")


if __name__ == "__main__":
    main()
