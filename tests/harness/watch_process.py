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

STARTUP_KILL_SHARE = 0.2  # share of the kills during the start
STARTUP_S = 2.0  # approximate
CHECKPOINTS_BEFORE_KILL = (1, 1, 1, 2, 3)  # for the other kills
MAX_KILL_DELAY_S = 0.1  # after that checkpoint


@dataclass(frozen=True)
class Watch:
    """A watch that writes points and alarms to a database and its checkpoints to a folder, both in this folder."""

    source: str
    folder: Path
    checkpoint_interval_s: float = 0.05

    @property
    def command(self) -> list[str]:
        """The command line."""
        out, state = f"sqlite:{self.folder / 'out.db'}", str(self.folder / "state")
        words = [sys.executable, "-m", "limpet", "watch", self.source, "--no-follow", "--checkpoint", state]
        return [*words, "--checkpoint-interval", str(self.checkpoint_interval_s), "--alarms", out, "--points", out]

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
            if rng.random() < STARTUP_KILL_SHARE:
                time.sleep(rng.uniform(0.0, STARTUP_S))
            else:
                n_before_kill = before + rng.choice(CHECKPOINTS_BEFORE_KILL)
                while process.poll() is None and self.n_checkpoints() < n_before_kill:
                    time.sleep(0.002)
                time.sleep(rng.uniform(0.0, MAX_KILL_DELAY_S))
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
        last = (
            max((name for name in os.listdir(state) if name.endswith(".limpet")), default="") if state.is_dir() else ""
        )
        return int(last[11:20]) if last else -1

    def rows(self) -> dict[str, list[Any]]:
        """Return all rows written, in order."""
        with sqlite3.connect(self.folder / "out.db") as database:
            tables = ("points", "alarms")
            return {name: database.execute(f"select * from {name} order by n").fetchall() for name in tables}

    def read_last_checkpoint(self) -> tuple[Any, Any, bytes]:
        """Return its last checkpoint: counts except those of checkpoints, position of the source, and state."""
        header, body = unpack_container(max((self.folder / "state").glob("checkpoint-*.limpet")).read_bytes())
        header["stats"].pop("checkpoints")
        return header["stats"], header["position"], bytes(body)


def compare_runs(first: Watch, second: Watch) -> dict[str, bool]:
    """Return what is equal to the last bit, by name."""
    first_checkpoint, second_checkpoint = first.read_last_checkpoint(), second.read_last_checkpoint()
    first_rows, second_rows = first.rows(), second.rows()
    return {
        "points": first_rows["points"] == second_rows["points"],
        "alarms": first_rows["alarms"] == second_rows["alarms"],
        "counts": first_checkpoint[0] == second_checkpoint[0],
        "position": first_checkpoint[1] == second_checkpoint[1],
        "state": first_checkpoint[2] == second_checkpoint[2],
    }
