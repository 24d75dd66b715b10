"""Kills `holdfast watch` again and again, and compares what came of it with a watch that nobody killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.learners.checkpoint import unsealed

STARTING = 0.2  # share of the kills that come while it is still starting
STARTS_IN = 2.0  # seconds, about


@dataclass(frozen=True)
class Watch:
    """A watch that writes points and alarms to a database and its checkpoints to a folder, both in this folder."""

    source: str
    folder: Path
    every: float = 0.05

    @property
    def command(self) -> list[str]:
        """As it is run."""
        out, state = f"sqlite:{self.folder / 'out.db'}", str(self.folder / "state")
        words = [sys.executable, "-m", "holdfast", "watch", self.source, "--once", "--checkpoint", state]
        return [*words, "--every", str(self.every), "--alarms", out, "--points", out]

    @property
    def log(self) -> Path:
        """What it has to say."""
        return self.folder / "log"

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as file:
            return subprocess.Popen(self.command, stdout=file, stderr=file, env=os.environ | {"HOLDFAST_QUIET": "1"})

    def run(self) -> None:
        """Lets it come to its end."""
        code = self.start().wait(600)
        if code != 0:
            raise RuntimeError(f"the watch ended with {code}: {self.log.read_text()[-2000:]}")

    def run_with_kills(self, kills: int, longest: float, seed: int = 0) -> int:
        """Kills it so many times, then lets it come to its end; how many times it could be killed.

        Most kills come within `longest` seconds of its having got to work, the others while it is still starting.
        """
        rng, killed = random.Random(seed), 0
        while killed < kills:
            before, process = self.progress(), self.start()
            if rng.random() < STARTING:
                time.sleep(rng.uniform(0.0, STARTS_IN))
            else:
                while process.poll() is None and self.progress() == before:
                    time.sleep(0.002)
                time.sleep(rng.uniform(0.0, longest))
            if process.poll() is not None:
                break  # it had come to its end
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        self.run()
        return killed

    def progress(self) -> Any:
        """Something that changes as soon as it has done something."""
        state, written = self.folder / "state", self.folder / "out.db-wal"
        names = sorted(os.listdir(state)) if state.is_dir() else []
        return [name for name in names if name.endswith(".hf")], written.stat().st_size if written.exists() else 0

    def rows(self) -> dict[str, list[Any]]:
        """All that it wrote, in order."""
        with sqlite3.connect(self.folder / "out.db") as database:
            tables = ("points", "alarms")
            return {name: database.execute(f"select * from {name} order by n").fetchall() for name in tables}

    def newest(self) -> tuple[Any, Any, bytes]:
        """Its last checkpoint: counts but for those of checkpoints, position of the source, and state."""
        header, body = unsealed(max((self.folder / "state").glob("checkpoint-*.hf")).read_bytes())
        header["tally"].pop("checkpoints")
        return header["tally"], header["position"], bytes(body)


def same(one: Watch, other: Watch) -> dict[str, bool]:
    """What is equal, to the last bit."""
    ours, theirs = one.newest(), other.newest()
    mine, yours = one.rows(), other.rows()
    return {
        "points": mine["points"] == yours["points"],
        "alarms": mine["alarms"] == yours["alarms"],
        "counts": ours[0] == theirs[0],
        "position": ours[1] == theirs[1],
        "state": ours[2] == theirs[2],
    }
