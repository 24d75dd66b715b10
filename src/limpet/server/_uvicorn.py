"""Runs the app until somebody says stop."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from limpet.exceptions import InvalidInputError

SHUTDOWN_TIMEOUT_S = 5  # seconds for requests that are being answered when the server stops


class GracefulServer(uvicorn.Server):
    """Lets go of listeners first: they would keep it from stopping."""

    def __init__(self, app: FastAPI, on_ready: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",  # see `serve`
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
            timeout_keep_alive=30,
            limit_concurrency=2000,
            proxy_headers=False,  # who asks is who is connected
        )
        super().__init__(config)
        self._app, self._on_ready = app, on_ready

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """From start to end; what is in the way of a start is raised, where uvicorn would log it and leave."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Ready once the state is there and the port is open."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM and Ctrl-C: an orderly end, whose exit code is 0; a second Ctrl-C does not wait for anybody.

        uvicorn's own remembers the signal and raises it again at the end, which would look like a crash.
        """
        monitor = getattr(self._app.state, "monitor", None)
        if monitor is not None:
            monitor.hub.close()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket at this address, or an error in words; port 0 is any that is free."""
    if not 0 <= port < 1 << 16:  # which would be taken as another one
        raise InvalidInputError(f"cannot listen at {host}:{port}: ports go up to 65535")
    try:
        family, sock_type, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, sock_type, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(2048)
        except BaseException:
            sock.close()
            raise
    except (OSError, UnicodeError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidInputError(f"cannot listen at {host}:{port}: {reason}") from None
    return sock


def serve(app: FastAPI, sock: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serves until SIGTERM or Ctrl-C."""
    uvicorn_log = logging.getLogger("uvicorn")  # goes where ours goes; not what any client can cause
    uvicorn_log.handlers[:], uvicorn_log.propagate = logging.getLogger("limpet").handlers, False
    uvicorn_log.setLevel(logging.ERROR)
    server = GracefulServer(app, on_ready)
    server.run([sock])
    if not server.started:
        raise InvalidInputError("the server could not start; the log says why")
