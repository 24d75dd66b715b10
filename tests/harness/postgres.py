"""A PostgreSQL of our own in a folder of its own, on a free port of this machine, gone when it is done with."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from harness.nats import free_port
from limpet.exceptions import MissingExtraError

USER = "limpet"
DEBIAN = "/usr/lib/postgresql"  # where Debian has its programs, a folder for each version, none of them on the PATH
UNPRIVILEGED = "postgres"  # the user whom Debian runs it as


@cache
def programs() -> Path | None:
    """The folder of its programs, the newest version first; None where there is none."""
    for folder in sorted(Path(DEBIAN).glob("*/bin"), key=lambda path: path.parent.name.zfill(4), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def available() -> bool:
    """Whether `running` can start one here.

    It refuses to be run by root, so root needs somebody else to run it as.
    """
    return programs() is not None and (not _is_root() or _exists(UNPRIVILEGED))


@contextmanager
def running() -> Iterator[str]:
    """A server with an empty database; its URL."""
    if not available():
        raise MissingExtraError("this needs PostgreSQL: on Debian, apt-get install postgresql")
    folder, port = Path(tempfile.mkdtemp(prefix="limpet-postgres-")), free_port()
    data = folder / "data"
    try:
        if _is_root():
            shutil.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
        options = ["--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run("initdb", *options, f"--pgdata={data}")
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        words = [f"--{name}={value}" for name, value in settings.items()]
        server = _popen("postgres", "-D", str(data), *words)
        try:
            _wait(server, port)
            yield new_database(f"postgresql://{USER}@127.0.0.1:{port}/postgres")
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str) -> str:
    """The URL of one more empty database, in the server of this one."""
    name, at = f"d{uuid4().hex[:12]}", urlsplit(url)
    _run("createdb", "--host=127.0.0.1", f"--port={at.port}", f"--username={USER}", "--maintenance-db=postgres", name)
    return at._replace(path=f"/{name}").geturl()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Until it answers."""
    until = time.monotonic() + 30.0
    ask = [str(_program("pg_isready")), "--quiet", "--host=127.0.0.1", f"--port={port}"]
    while subprocess.run(ask, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        if server.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"PostgreSQL does not listen on {port}")
        time.sleep(0.05)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """At once, whoever is still connected: nothing that it has is needed any more."""
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(10.0)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _run(name: str, *words: str) -> None:
    """A program of it, to its end."""
    told = subprocess.run([str(_program(name)), *words], check=False, capture_output=True, text=True, **_as_whom())
    if told.returncode != 0:
        raise RuntimeError(f"{name} ended with {told.returncode}: {told.stderr[-1000:]}")


def _popen(name: str, *words: str) -> subprocess.Popen[bytes]:
    """A program of it, in the background; Ctrl-C is for us, not for it."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    return subprocess.Popen([str(_program(name)), *words], **quiet, **_as_whom())


def _program(name: str) -> Path:
    folder = programs()
    assert folder is not None
    return folder / name


def _as_whom() -> dict[str, Any]:
    """Who runs it, and from a folder that everybody may read."""
    somebody = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if _is_root() else {}
    return {"cwd": "/", **somebody}


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _exists(user: str) -> bool:
    import pwd  # not on Windows, where nobody is root

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
