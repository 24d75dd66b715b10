"""The command `limpet serve`: a page to look at, until somebody says stop."""

from __future__ import annotations

import logging
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet.cli._logging import configure_logging
from limpet.exceptions import InvalidInputError
from limpet.streams.monitor_plan import make_learner
from limpet.streams.uri import local_path, open_source, redact

if TYPE_CHECKING:
    from limpet.server.monitor import Monitor


log = logging.getLogger("limpet.server")
MIN_TOKEN_CHARS = 16  # characters


def run_serve(uri: str, values: dict[str, Any]) -> None:
    """Serves until SIGTERM or Ctrl-C."""
    configure_logging(values["log_format"])
    from limpet.server._uvicorn import bind_socket, serve
    from limpet.server.app import make_app
    from limpet.server.ingest.writer import CHECKPOINT_INTERVAL_S
    from limpet.server.monitor import MonitorConfig
    from limpet.server.security import SecurityConfig, is_loopback

    token = load_token(values["token_file"])
    if token is None and not is_loopback(values["host"]):
        raise InvalidInputError(
            f"--host {values['host']}: others could reach it, so a token is needed: set LIMPET_TOKEN, or --token-file"
        )
    learner = make_learner(values)
    checkpoint_interval_s = CHECKPOINT_INTERVAL_S if values["every"] is None else values["every"]
    with closing(bind_socket(values["host"], values["port"])) as listener:
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        settings = MonitorConfig(values["store"], learner, values["keep"], values["max_streams"], checkpoint_interval_s)
        rules = SecurityConfig(token, values["rate"], values["max_body"])
        app = make_app(settings, rules, lambda live: _run_feeds(live, uri, values))

        def on_ready() -> None:
            log.info("serving at %s, kept in %s", url, _redact_store(values["store"]))
            if should_open_browser(values["open"]):
                threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        serve(app, listener, on_ready)
    log.info("stopped")


def load_token(path: Path | None) -> str | None:
    """The token, from a file or from the environment; not from the command line, which others can see."""
    token = os.environ.get("LIMPET_TOKEN")
    if path is not None:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"--token-file: {path} cannot be read: {getattr(error, 'strerror', error)}"
            ) from None
    if token is None:
        return None
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise InvalidInputError(
            f"the token needs at least {MIN_TOKEN_CHARS} printable ASCII characters, such as `openssl rand -hex 24`"
        )
    return token


def should_open_browser(wanted: bool | None) -> bool:
    """Whether to open the page: if it is said, or if somebody sits here with a screen."""
    if wanted is not None:
        return wanted
    screen = sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return screen and sys.stdout.isatty() and "CI" not in os.environ


@contextmanager
def _run_feeds(watching: Monitor, uri: str, values: dict[str, Any]) -> Iterator[None]:
    """What brings points in, besides HTTP."""
    with ExitStack() as resources:
        if uri:
            from limpet.server.ingest.source_reader import run_reader

            column_options = {name: values[name] for name in ("key", "time", "form")}
            source = open_source(uri, columns=values["columns"] or None, follow=True, **column_options)
            path = local_path(uri)
            name, stream = (redact(uri), redact(uri)) if path is None else (str(path.resolve()), path.stem)
            log.info("watching %s", redact(uri))
            resources.enter_context(run_reader(watching, source, name, stream, values["joint"]))
        if values["demo"]:
            from limpet.server.demo import run_demo

            resources.enter_context(run_demo(watching))
        yield


def _redact_store(store_uri: str) -> str:
    return redact(store_uri) if "://" in store_uri else store_uri
