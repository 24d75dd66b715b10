"""The ASGI application: API and pages."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from string import Template
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter

from limpet import __version__
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
Errors are `{"error": {"code", "message", "details"}}`."""
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
        try:
            monitor = app.state.monitor = Monitor(config, store)
        except BaseException:
            store.close()
            raise
        try:
            with open_sources(monitor) if open_sources else nullcontext():
                yield
        finally:
            monitor.stop()

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
    _add_pages(app)
    _document_bodies(app)

    app.state.request_guard = RequestGuard(security or SecurityConfig())
    app.add_middleware(SecurityMiddleware, request_guard=app.state.request_guard)
    return app


class _PrecompressedFiles(StaticFiles):
    """Static files, of which those with the suffix .gz are sent with Content-Encoding: gzip."""

    def file_response(self, full_path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Response:
        """Return the response for a file."""
        response = super().file_response(full_path, *args, **kwargs)
        if str(full_path).endswith(".gz"):
            response.headers["Content-Encoding"] = "gzip"
        return response


def _add_pages(app: FastAPI) -> None:
    app.mount("/static", _PrecompressedFiles(directory=STATIC_DIR), name="static")
    for path, name in {"/": "monitor", "/explorer": "explorer", "/api": "api"}.items():
        app.add_api_route(path, _page(name), include_in_schema=False)
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC_DIR / "icon.svg"), include_in_schema=False)


def _page(name: str) -> Callable[[], HTMLResponse]:
    """Return the handler of a page; pages differ in their script and style sheet."""
    title = "API" if name == "api" else name.capitalize()
    text = Template((STATIC_DIR / "page.html").read_text(encoding="utf-8")).substitute(name=name, title=title)
    return lambda: HTMLResponse(text)


def _document_bodies(app: FastAPI) -> None:
    """Add the schemas of bodies that the endpoints parse themselves to the OpenAPI document."""
    generate_openapi = app.openapi

    def openapi_with_bodies() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate_openapi()
            components = document.setdefault("components", {}).setdefault("schemas", {})
            bodies: dict[str, Any] = {"PointBody": schemas.PointBody, "StreamPointList": schemas.StreamPointList}
            for name, model in bodies.items():
                schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
                components |= schema.pop("$defs", {})
                components[name] = schema
            _document_errors(document)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi_with_bodies  # type: ignore[method-assign]


def _document_errors(document: dict[str, Any]) -> None:
    """Document that every operation may fail with an ErrorResponse, in place of FastAPI's validation error."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["4XX"] = {"description": "The request failed; nothing is stored.", "content": error}
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
