"""The app: API and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from string import Template
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter

from limpet import __version__
from limpet.server import schemas
from limpet.server.db import Store
from limpet.server.explorer import routes as explorer
from limpet.server.middleware import SecurityMiddleware
from limpet.server.monitor import Monitor, MonitorConfig
from limpet.server.responses import install_error_handlers
from limpet.server.routes import alarms, events, meta, points, session, streams
from limpet.server.security import RequestGuard, SecurityConfig

STATIC_DIR = Path(__file__).parent / "static"
API_DESCRIPTION = """Learns from data streams in one pass: ignores outliers, follows changes, tells which is which.

Post points to a stream and get back what they came to; read streams, alarms and history; listen to what is new.
Errors are `{"error": {"code", "message", "details"}}`."""
SourceFactory = Callable[[Monitor], AbstractContextManager[Any]]


def make_app(
    config: MonitorConfig, security: SecurityConfig | None = None, open_sources: SourceFactory | None = None
) -> FastAPI:
    """The app for these settings. feeding: what else brings points in while it runs."""
    store = Store(config.store)

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
        docs_url=None,  # which would load its scripts from another host; /api is ours
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


def _add_pages(app: FastAPI) -> None:
    app.mount("/static", StaticFiles(directory=STATIC_DIR), name="static")
    for path, name in {"/": "monitor", "/explorer": "explorer", "/api": "api"}.items():
        app.add_api_route(path, _page(name), include_in_schema=False)
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC_DIR / "icon.svg"), include_in_schema=False)


def _page(name: str) -> Callable[[], HTMLResponse]:
    """All pages are alike but for their script and their style."""
    title = "API" if name == "api" else name.capitalize()
    text = Template((STATIC_DIR / "page.html").read_text(encoding="utf-8")).substitute(name=name, title=title)
    return lambda: HTMLResponse(text)


def _document_bodies(app: FastAPI) -> None:
    """The bodies of posts are read by hand; their schemas are put into the documentation here."""
    generate_openapi = app.openapi

    def openapi_with_bodies() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate_openapi()
            components = document.setdefault("components", {}).setdefault("schemas", {})
            bodies: dict[str, Any] = {"Body": schemas.Body, "Many": schemas.StreamPointList}
            for name, model in bodies.items():
                schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
                components |= schema.pop("$defs", {})
                components[name] = schema
            _document_errors(document)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi_with_bodies  # type: ignore[method-assign]


def _document_errors(document: dict[str, Any]) -> None:
    """Whatever is asked for may be refused, and all errors look alike; FastAPI's own would look otherwise."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["4XX"] = {"description": "It is not done, and nothing is stored.", "content": error}
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
