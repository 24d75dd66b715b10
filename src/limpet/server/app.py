"""ASGI application (API, pages) and its uvicorn server, stopped by a signal."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, closing, nullcontext
from pathlib import Path
from string import Template
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter

from limpet import __version__
from limpet.exceptions import InvalidInputError
from limpet.server import schemas
from limpet.server.db import Store
from limpet.server.explorer import routes as explorer
from limpet.server.monitor import Monitor, MonitorConfig
from limpet.server.responses import install_error_handlers
from limpet.server.routes import alarms, events, meta, points, session, streams
from limpet.server.security import RequestGuard, SecurityConfig, SecurityMiddleware

STATIC_DIR = Path(__file__).parent / "static"
API_DESCRIPTION = """Learns from data streams in one pass: ignores outliers, follows changes, reports which is which.

Post points to a stream and receive their results; read streams, alarms and history; subscribe to events.
Errors are `{"error": {"code", "message"}}`."""
SHUTDOWN_TIMEOUT_S = 5  # for requests in progress
SourceFactory = Callable[[Monitor], AbstractContextManager[Any]]


def make_app(
    config: MonitorConfig, security: SecurityConfig | None = None, open_sources: SourceFactory | None = None
) -> FastAPI:
    """Return the app.

    Parameters
    ----------
    config : MonitorConfig
        The database and the learner.
    security : SecurityConfig, optional
        Token and limits; by default no token, for this machine only.
    open_sources : callable, optional
        Takes the monitor and returns a context manager; it is open while the app runs and may submit points.

    Returns
    -------
    FastAPI
        The application. It opens the database at once, and closes it at shutdown.
    """
    store = Store(config.database)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with closing(store):
            monitor = app.state.monitor = Monitor(config, store)
            try:
                with open_sources(monitor) if open_sources else nullcontext():
                    yield
            finally:
                monitor.writer.stop()

    app = FastAPI(
        title="limpet",
        version=__version__,
        description=API_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from another host; see /api
        redoc_url=None,
    )
    install_error_handlers(app)
    for module in (points, events, streams, alarms, session, explorer, meta):  # events first: keys may have slashes
        app.include_router(module.router)
    app.mount("/static", _PrecompressedFiles(directory=STATIC_DIR), name="static")
    for path, name in {"/": "monitor", "/explorer": "explorer", "/api": "api"}.items():
        app.add_api_route(path, _page(name), include_in_schema=False)
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC_DIR / "icon.svg"), include_in_schema=False)
    _complete_openapi(app)

    app.state.request_guard = RequestGuard(security or SecurityConfig())
    app.add_middleware(SecurityMiddleware, request_guard=app.state.request_guard)
    return app


class _PrecompressedFiles(StaticFiles):
    """Static files; those with suffix .gz are sent with Content-Encoding: gzip."""

    def file_response(self, full_path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(full_path, *args, **kwargs)
        if str(full_path).endswith(".gz"):
            response.headers["Content-Encoding"] = "gzip"
        return response


def _page(name: str) -> Callable[[], HTMLResponse]:
    """Return the handler of a page; pages differ in their script and style sheet."""
    title = "API" if name == "api" else name.capitalize()
    text = Template((STATIC_DIR / "page.html").read_text(encoding="utf-8")).substitute(name=name, title=title)
    return lambda: HTMLResponse(text)


def _complete_openapi(app: FastAPI) -> None:
    """Add schemas of errors, and of bodies that endpoints parse, to the document."""
    generate_openapi = app.openapi

    def complete_openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate_openapi()
            components = document.setdefault("components", {}).setdefault("schemas", {})
            bodies: dict[str, Any] = {"PointBody": schemas.PointBody, "StreamPointList": schemas.StreamPointList}
            for name, model in bodies.items():
                schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
                components |= schema.pop("$defs", {})
                components[name] = schema
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
            failure = {"description": "The request failed; nothing is stored.", "content": content}
            for path in document["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)  # FastAPI's validation error
                    operation["responses"]["4XX"] = failure
            for name in ("HTTPValidationError", "ValidationError"):
                components.pop(name, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = complete_openapi  # type: ignore[method-assign]


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
        """Run until shutdown; raise an error of the start, which uvicorn only logs."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report readiness once the state is restored and the port is open."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Exit with 0 on SIGTERM and Ctrl-C; a second Ctrl-C does not await requests.

        uvicorn would raise the signal again at the end, which looks like a crash.
        """
        if monitor := getattr(self._app.state, "monitor", None):
            monitor.notifier.close()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 is any free port."""
    if not 0 <= port < 1 << 16:  # would be taken modulo 65536
        raise InvalidInputError(f"port: must be from 0 to 65535, got {port}.")
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
    """Serve until SIGTERM or Ctrl-C; call `on_ready` once requests are accepted."""
    uvicorn_log = logging.getLogger("uvicorn")  # errors only: clients can cause warnings
    uvicorn_log.handlers[:], uvicorn_log.propagate = logging.getLogger("limpet").handlers, False
    uvicorn_log.setLevel(logging.ERROR)
    server, (host, port, *_) = GracefulServer(app, on_ready), sock.getsockname()
    server.run([sock])
    if not server.started:
        raise InvalidInputError(f"host, port: the server failed to start at {host}:{port}. See the log.")
