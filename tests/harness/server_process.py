"""`limpet serve` as people start it, in a process of its own that can be stopped, killed, and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import limpet.server  # noqa: F401 # says so where its packages are missing

PATIENCE = 120.0  # seconds until it serves: kernels may have to be compiled


class Served:
    """A server on one store. log: a file for what it has to say.

    port: 0 until it has served for the first time; from then on it is always the same.
    """

    def __init__(self, store: str, log: Path, *options: str) -> None:
        self.store, self.log, self.options, self.port = store, log, options, 0
        self.process: subprocess.Popen[bytes] | None = None
        self._begin = 0

    def start(self, *, wait: bool = True) -> None:
        """Starts it. wait: until it serves."""
        words = ["serve", "--port", str(self.port), "--database", self.store, "--no-open", *self.options]
        with self.log.open("ab") as file:
            self._begin = file.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "limpet", *words],
                stdout=file,
                stderr=file,
                env=os.environ | {"LIMPET_QUIET": "1"},
                start_new_session=True,  # Ctrl-C is for us, and we stop it
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it says that it serves."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(r"serving at http://[^ ]*:(\d+)", self.said())) is None:
            if self.process is None or self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not start: {self.said()[-2000:]}")
            time.sleep(0.01)
        self.port = int(found[1])

    def said(self) -> str:
        """Its log since it was started."""
        with self.log.open("rb") as file:
            file.seek(self._begin)
            return file.read().decode(errors="replace")

    def kill(self) -> None:
        """kill -9, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """In order, as SIGTERM asks for."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60.0)
        self.process = None
        if code != 0:
            raise RuntimeError(f"the server ended with {code}: {self.said()[-2000:]}")

    def megabytes(self) -> float:
        """Its memory, as the kernel tells it."""
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_seconds(self) -> float:
        """Time of processors that it has taken so far, its own and the kernel's for it."""
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(store: str, folder: Path, *options: str) -> Iterator[Served]:
    """A server that serves, killed at the end if it was not stopped."""
    server = Served(store, folder / "serve.log", *options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
