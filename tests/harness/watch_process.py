"""Kill `limpet watch` repeatedly, and compare the result with a watch that was not killed."""

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

from limpet.learners.serialization import unpack_container

STARTING = 0.2  # share of the kills that come while it is still starting
STARTS_IN = 2.0  # seconds, about
FURTHER = (1, 1, 1, 2, 3)  # checkpoints until the others come
LATER = 0.1  # seconds, and up to so much later


@dataclass(frozen=True)
class Watch:
    """A watch that writes points and alarms to a database and its checkpoints to a folder, both in this folder."""

    source: str
    folder: Path
    every: float = 0.05

    @property
    def command(self) -> list[str]:
        """The command line."""
        out, state = f"sqlite:{self.folder / 'out.db'}", str(self.folder / "state")
        words = [sys.executable, "-m", "limpet", "watch", self.source, "--no-follow", "--checkpoint", state]
        return [*words, "--checkpoint-interval", str(self.every), "--alarms", out, "--points", out]

    @property
    def log(self) -> Path:
        """The file of its output."""
        return self.folder / "log"

    def start(self) -> subprocess.Popen[bytes]:
        """Start the watch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as file:
            return subprocess.Popen(self.command, stdout=file, stderr=file, env=os.environ | {"LIMPET_QUIET": "1"})

    def run(self) -> None:
        """Run the watch to its end."""
        code = self.start().wait(600)
        if code != 0:
            raise RuntimeError(f"the watch ended with {code}: {self.log.read_text()[-2000:]}")

    def run_with_kills(self, kills: int, seed: int = 0) -> int:
        """Kill it `kills` times, then run it to its end; return how many times it was killed.

        Most kills are some checkpoints after the start, at a random time; the others during the start.
        """
        rng, killed = random.Random(seed), 0
        while killed < kills:
            before, process = self.n_checkpoints(), self.start()
            if rng.random() < STARTING:
                time.sleep(rng.uniform(0.0, STARTS_IN))
            else:
                enough = before + rng.choice(FURTHER)
                while process.poll() is None and self.n_checkpoints() < enough:
                    time.sleep(0.002)
                time.sleep(rng.uniform(0.0, LATER))
            if process.poll() is not None:
                break  # it has ended
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        self.run()
        return killed

    def n_checkpoints(self) -> int:
        """Return the number of checkpoints written."""
        state = self.folder / "state"
        newest = (
            max((name for name in os.listdir(state) if name.endswith(".limpet")), default="") if state.is_dir() else ""
        )
        return int(newest[11:20]) if newest else -1

    def rows(self) -> dict[str, list[Any]]:
        """Return all rows written, in order."""
        with sqlite3.connect(self.folder / "out.db") as database:
            tables = ("points", "alarms")
            return {name: database.execute(f"select * from {name} order by n").fetchall() for name in tables}

    def newest(self) -> tuple[Any, Any, bytes]:
        """Return its last checkpoint: counts except those of checkpoints, position of the source, and state."""
        header, body = unpack_container(max((self.folder / "state").glob("checkpoint-*.limpet")).read_bytes())
        header["stats"].pop("checkpoints")
        return header["stats"], header["position"], bytes(body)


def same(first: Watch, second: Watch) -> dict[str, bool]:
    """Return what is equal to the last bit, by name."""
    ours, theirs = first.newest(), second.newest()
    mine, yours = first.rows(), second.rows()
    return {
        "points": mine["points"] == yours["points"],
        "alarms": mine["alarms"] == yours["alarms"],
        "counts": ours[0] == theirs[0],
        "position": ours[1] == theirs[1],
        "state": ours[2] == theirs[2],
    }
