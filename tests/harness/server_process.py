"""`limpet serve` in a separate process, which can be stopped, killed and restarted."""

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

import limpet.server  # noqa: F401  # raises if its packages are missing

START_TIMEOUT_S = 120.0  # kernels may have to be compiled


class ServerProcess:
    """A server on one database, with a file for its log.

    The port is free at the first start, and the same after restarts.
    """

    def __init__(self, store: str, log: Path, *options: str) -> None:
        self.store, self.log, self.options, self.port = store, log, options, 0
        self.process: subprocess.Popen[bytes] | None = None
        self._log_offset = 0

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it accepts requests."""
        arguments = ["serve", "--port", str(self.port), "--database", self.store, "--no-open", *self.options]
        with self.log.open("ab") as file:
            self._log_offset = file.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "limpet", *arguments],
                stdout=file,
                stderr=file,
                env=os.environ | {"LIMPET_QUIET": "1"},
                start_new_session=True,  # Ctrl-C is for the caller
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it accepts requests."""
        until = time.monotonic() + START_TIMEOUT_S
        while (match := re.search(r"serving at http://[^ ]*:(\d+)", self.read_log())) is None:
            if self.process is None or self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not start: {self.read_log()[-2000:]}")
            time.sleep(0.01)
        self.port = int(match[1])

    def read_log(self) -> str:
        """Return the log since the last start."""
        with self.log.open("rb") as file:
            file.seek(self._log_offset)
            return file.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill it with SIGKILL, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Stop it with SIGTERM."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60.0)
        self.process = None
        if code != 0:
            raise RuntimeError(f"the server ended with {code}: {self.read_log()[-2000:]}")

    def megabytes(self) -> float:
        """Return its resident memory."""
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_seconds(self) -> float:
        """Return its user and system time."""
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def run_server(store: str, folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Yield a running server; kill it at the end."""
    server = ServerProcess(store, folder / "serve.log", *options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
