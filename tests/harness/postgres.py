"""A temporary PostgreSQL server on a free port."""

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
DEBIAN_FOLDER = "/usr/lib/postgresql"  # Debian's programs, a folder per version, not on the PATH
UNPRIVILEGED_USER = "postgres"  # Debian's user for it


@cache
def programs() -> Path | None:
    """Return the folder of the newest version's programs, None if it is not installed."""
    for folder in sorted(Path(DEBIAN_FOLDER).glob("*/bin"), key=lambda path: path.parent.name.zfill(4), reverse=True):
        if (folder / "initdb").exists():
            return folder
    path = shutil.which("initdb")
    return None if path is None else Path(path).resolve().parent


def available() -> bool:
    """Return whether `running` can start a server; root needs another user to run it as."""
    return programs() is not None and (not _is_root() or _exists(UNPRIVILEGED_USER))


@contextmanager
def running() -> Iterator[str]:
    """Yield the URL of an empty database in a new server."""
    if not available():
        raise MissingExtraError("this needs PostgreSQL: on Debian, apt-get install postgresql")
    folder, port = Path(tempfile.mkdtemp(prefix="limpet-postgres-")), free_port()
    data = folder / "data"
    try:
        if _is_root():
            shutil.chown(folder, UNPRIVILEGED_USER, UNPRIVILEGED_USER)
        options = ["--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run("initdb", *options, f"--pgdata={data}")
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        server = _popen("postgres", "-D", str(data), *arguments)
        try:
            _wait(server, port)
            yield new_database(f"postgresql://{USER}@127.0.0.1:{port}/postgres")
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str) -> str:
    """Create another empty database in the server of a URL; return its URL."""
    name, parts = f"d{uuid4().hex[:12]}", urlsplit(url)
    _run(
        "createdb", "--host=127.0.0.1", f"--port={parts.port}", f"--username={USER}", "--maintenance-db=postgres", name
    )
    return parts._replace(path=f"/{name}").geturl()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server accepts connections."""
    until = time.monotonic() + 30.0
    command = [str(_program("pg_isready")), "--quiet", "--host=127.0.0.1", f"--port={port}"]
    while subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        if server.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"PostgreSQL does not listen on {port}")
        time.sleep(0.05)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server immediately; its data are temporary."""
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(10.0)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _run(name: str, *arguments: str) -> None:
    """Run one of its programs."""
    result = subprocess.run(
        [str(_program(name)), *arguments], check=False, capture_output=True, text=True, **_user_options()
    )
    if result.returncode != 0:
        raise RuntimeError(f"{name} ended with {result.returncode}: {result.stderr[-1000:]}")


def _popen(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start one of its programs in the background."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    return subprocess.Popen([str(_program(name)), *arguments], **quiet, **_user_options())


def _program(name: str) -> Path:
    folder = programs()
    assert folder is not None
    return folder / name


def _user_options() -> dict[str, Any]:
    """Return the user and the working folder of its programs."""
    user = {"user": UNPRIVILEGED_USER, "group": UNPRIVILEGED_USER, "extra_groups": []} if _is_root() else {}
    return {"cwd": "/", **user}


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _exists(user: str) -> bool:
    import pwd  # missing on Windows

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
