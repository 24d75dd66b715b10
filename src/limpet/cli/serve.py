"""The command `limpet serve`: serve the web page and API until a signal arrives."""

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

from limpet._format import redact_url
from limpet.cli._logging import configure_logging
from limpet.cli.options import get_column_names, make_learner
from limpet.exceptions import InvalidInputError
from limpet.streams.uri import local_path, open_source

if TYPE_CHECKING:
    from limpet.server.monitor import Monitor


log = logging.getLogger("limpet.server")
MIN_TOKEN_CHARS = 16


def run_serve(uri: str, values: dict[str, Any]) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    configure_logging(values["log_format"])
    from limpet.server.app import bind_socket, make_app, serve
    from limpet.server.ingest.writer import CHECKPOINT_INTERVAL_S
    from limpet.server.monitor import MonitorConfig
    from limpet.server.security import SecurityConfig, is_loopback

    token = load_token(values["token_file"])
    if token is None and not is_loopback(values["host"]):
        raise InvalidInputError(
            f"--host: requires a token, since other machines reach {values['host']}. Set LIMPET_TOKEN or --token-file."
        )
    learner = make_learner(values)
    interval_s = CHECKPOINT_INTERVAL_S if values["checkpoint_interval"] is None else values["checkpoint_interval"]
    with closing(bind_socket(values["host"], values["port"])) as listener:
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        config = MonitorConfig(values["database"], learner, values["retain_points"], values["max_streams"], interval_s)
        security = SecurityConfig(token, values["rate"], values["max_body"])
        app = make_app(config, security, lambda monitor: _run_inputs(monitor, uri, values))

        def on_ready() -> None:
            log.info("serving at %s, database %s", url, redact_url(values["database"]))
            if should_open_browser(values["open"]):
                threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        serve(app, listener, on_ready)
    log.info("stopped")


def load_token(path: Path | None) -> str | None:
    """Return the token from a file or the environment: command lines are public."""
    token = os.environ.get("LIMPET_TOKEN")
    if path is not None:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", error)
            raise InvalidInputError(f"--token-file: {path} cannot be read: {reason}.") from None
    if token is None:
        return None
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise InvalidInputError(
            f"LIMPET_TOKEN: must have at least {MIN_TOKEN_CHARS} printable ASCII characters. "
            "`openssl rand -hex 24` makes one."
        )
    return token


def should_open_browser(is_requested: bool | None) -> bool:
    """Return whether to open the page: as requested, or on an interactive desktop."""
    if is_requested is not None:
        return is_requested
    has_screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_screen and sys.stdout.isatty() and "CI" not in os.environ


@contextmanager
def _run_inputs(monitor: Monitor, uri: str, values: dict[str, Any]) -> Iterator[None]:
    """Run what brings points in besides HTTP."""
    with ExitStack() as resources:
        if uri:
            from limpet.server.ingest.source_reader import run_reader

            source = open_source(uri, **get_column_names(values), follow=True, input_format=values["input_format"])
            path = local_path(uri)
            name, stream = (redact_url(uri), redact_url(uri)) if path is None else (str(path.resolve()), path.stem)
            log.info("watching %s", redact_url(uri))
            resources.enter_context(run_reader(monitor, source, name, stream, values["joint"]))
        if values["demo"]:
            from limpet.server.demo import run_demo

            resources.enter_context(run_demo(monitor))
        yield
