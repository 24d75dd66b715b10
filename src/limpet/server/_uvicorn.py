"""Run the app with uvicorn until a signal stops it."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from limpet.exceptions import InvalidInputError

SHUTDOWN_TIMEOUT_S = 5  # for requests in progress


class GracefulServer(uvicorn.Server):
    """uvicorn server that ends event streams first; they would delay the shutdown."""

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
            proxy_headers=False,  # the client is the connected address
        )
        super().__init__(config)
        self._app, self._on_ready = app, on_ready

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Run from start to shutdown; raise an error of the start, which uvicorn would only log."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report readiness once the state is restored and the port is open."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down with exit code 0 on SIGTERM and Ctrl-C; a second Ctrl-C does not wait for requests.

        uvicorn would raise the signal again at the end, which looks like a crash.
        """
        monitor = getattr(self._app.state, "monitor", None)
        if monitor is not None:
            monitor.notifier.close()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 is any free port."""
    if not 0 <= port < 1 << 16:  # would be taken modulo 65536
        raise InvalidInputError(f"port: expected 0 to 65535, got {port}.")
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
        raise InvalidInputError(f"host, port: cannot listen at {host}:{port}: {reason}.") from None
    return sock


def serve(app: FastAPI, sock: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve the app on a socket until SIGTERM or Ctrl-C; call `on_ready` once it accepts requests."""
    uvicorn_log = logging.getLogger("uvicorn")  # errors only: clients can cause warnings
    uvicorn_log.handlers[:], uvicorn_log.propagate = logging.getLogger("limpet").handlers, False
    uvicorn_log.setLevel(logging.ERROR)
    server = GracefulServer(app, on_ready)
    server.run([sock])
    if not server.started:
        raise InvalidInputError("the server failed to start; see the log.")
