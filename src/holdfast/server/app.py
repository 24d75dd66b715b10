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

from holdfast import __version__
from holdfast.server.api import about, alarms, events, points, schemas, session, streams
from holdfast.server.api.answers import tell_errors
from holdfast.server.api.door import Door, Rules
from holdfast.server.api.guard import Guard
from holdfast.server.explorer import routes as explorer
from holdfast.server.live.watching import Settings, Watching
from holdfast.server.store import Store

STATIC = Path(__file__).parent / "static"
ABOUT = """Learns from data streams in one pass: ignores outliers, follows changes, tells which is which.

Post points to a stream and get back what they came to; read streams, alarms and history; listen to what is new.
Errors are `{"error": {"code", "message", "details"}}`."""
Feeding = Callable[[Watching], AbstractContextManager[Any]]


def make_app(settings: Settings, rules: Rules | None = None, feeding: Feeding | None = None) -> FastAPI:
    """The app for these settings. feeding: what else brings points in while it runs."""
    store = Store(settings.store)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        try:
            watching = app.state.watching = Watching(settings, store)
        except BaseException:
            store.close()
            raise
        try:
            with feeding(watching) if feeding else nullcontext():
                yield
        finally:
            watching.stop()

    app = FastAPI(
        title="holdfast",
        version=__version__,
        description=ABOUT,
        lifespan=life,
        docs_url=None,  # which would load its scripts from another host; /api is ours
        redoc_url=None,
    )
    tell_errors(app)
    for part in (points, events, streams, alarms, session, explorer, about):  # events first: keys may have slashes
        app.include_router(part.router)
    _add_pages(app)
    _document_bodies(app)

    app.state.door = Door(rules or Rules())
    app.add_middleware(Guard, door=app.state.door)
    return app


def _add_pages(app: FastAPI) -> None:
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for path, name in {"/": "monitor", "/explorer": "explorer", "/api": "api"}.items():
        app.add_api_route(path, _page(name), include_in_schema=False)
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC / "icon.svg"), include_in_schema=False)


def _page(name: str) -> Callable[[], HTMLResponse]:
    """All pages are alike but for their script and their style."""
    title = "API" if name == "api" else name.capitalize()
    text = Template((STATIC / "page.html").read_text(encoding="utf-8")).substitute(name=name, title=title)
    return lambda: HTMLResponse(text)


def _document_bodies(app: FastAPI) -> None:
    """The bodies of posts are read by hand; their schemas are put into the documentation here."""
    plain = app.openapi

    def documented() -> dict[str, Any]:
        if app.openapi_schema is None:
            told = plain()
            own = told.setdefault("components", {}).setdefault("schemas", {})
            bodies: dict[str, Any] = {"Body": schemas.Body, "Many": schemas.Many}
            for name, kind in bodies.items():
                schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
                own |= schema.pop("$defs", {})
                own[name] = schema
            _document_errors(told)
            app.openapi_schema = told
        return app.openapi_schema

    app.openapi = documented  # type: ignore[method-assign]


def _document_errors(told: dict[str, Any]) -> None:
    """Whatever is asked for may be refused, and all errors look alike; FastAPI's own would look otherwise."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path in told["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["4XX"] = {"description": "It is not done, and nothing is stored.", "content": error}
    for name in ("HTTPValidationError", "ValidationError"):
        told["components"]["schemas"].pop(name, None)
