"""Kills `limpet watch` again and again, and compares what came of it with a watch that nobody killed."""

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
        """As it is run."""
        out, state = f"sqlite:{self.folder / 'out.db'}", str(self.folder / "state")
        words = [sys.executable, "-m", "limpet", "watch", self.source, "--no-follow", "--checkpoint", state]
        return [*words, "--checkpoint-interval", str(self.every), "--alarms", out, "--points", out]

    @property
    def log(self) -> Path:
        """What it has to say."""
        return self.folder / "log"

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as file:
            return subprocess.Popen(self.command, stdout=file, stderr=file, env=os.environ | {"LIMPET_QUIET": "1"})

    def run(self) -> None:
        """Lets it come to its end."""
        code = self.start().wait(600)
        if code != 0:
            raise RuntimeError(f"the watch ended with {code}: {self.log.read_text()[-2000:]}")

    def run_with_kills(self, kills: int, seed: int = 0) -> int:
        """Kills it so many times, then lets it come to its end; how many times it could be killed.

        Most kills come some checkpoints after it has got to work, and a random time later; the others while it is
        still starting.
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
                break  # it had come to its end
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        self.run()
        return killed

    def n_checkpoints(self) -> int:
        """How many it has written."""
        state = self.folder / "state"
        newest = (
            max((name for name in os.listdir(state) if name.endswith(".limpet")), default="") if state.is_dir() else ""
        )
        return int(newest[11:20]) if newest else -1

    def rows(self) -> dict[str, list[Any]]:
        """All that it wrote, in order."""
        with sqlite3.connect(self.folder / "out.db") as database:
            tables = ("points", "alarms")
            return {name: database.execute(f"select * from {name} order by n").fetchall() for name in tables}

    def newest(self) -> tuple[Any, Any, bytes]:
        """Its last checkpoint: counts but for those of checkpoints, position of the source, and state."""
        header, body = unpack_container(max((self.folder / "state").glob("checkpoint-*.limpet")).read_bytes())
        header["stats"].pop("checkpoints")
        return header["stats"], header["position"], bytes(body)


def same(first: Watch, second: Watch) -> dict[str, bool]:
    """What is equal, to the last bit."""
    ours, theirs = first.newest(), second.newest()
    mine, yours = first.rows(), second.rows()
    return {
        "points": mine["points"] == yours["points"],
        "alarms": mine["alarms"] == yours["alarms"],
        "counts": ours[0] == theirs[0],
        "position": ours[1] == theirs[1],
        "state": ours[2] == theirs[2],
    }
