"""The command `holdfast serve`: a page to look at, until somebody says stop."""

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

from holdfast.cli.arrangement import learner_of
from holdfast.cli.logs import set_up_logs
from holdfast.errors import BadInputError
from holdfast.streams.places import path_at, shown, source_at

if TYPE_CHECKING:
    from holdfast.server.live.watching import Watching

log = logging.getLogger("holdfast.server")
SHORTEST_TOKEN = 16  # characters


def run_serve(place: str, values: dict[str, Any]) -> None:
    """Serves until SIGTERM or Ctrl-C."""
    set_up_logs(values["log_format"])
    from holdfast.server.api.door import Rules, is_loopback
    from holdfast.server.app import make_app
    from holdfast.server.live.keeper import EVERY
    from holdfast.server.live.watching import Settings
    from holdfast.server.serving import listen, serve

    token = token_of(values["token_file"])
    if token is None and not is_loopback(values["host"]):
        raise BadInputError(
            f"--host {values['host']}: others could reach it, so a token is needed: set HOLDFAST_TOKEN, or --token-file"
        )
    learner = learner_of(values)
    every = EVERY if values["every"] is None else values["every"]
    with closing(listen(values["host"], values["port"])) as own:
        host, port = own.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        settings = Settings(values["store"], learner, values["keep"], values["max_streams"], every)
        rules = Rules(token, values["rate"], values["max_body"])
        app = make_app(settings, rules, lambda live: _feeds(live, place, values))

        def on_ready() -> None:
            log.info("serving at %s, kept in %s", url, _shown_store(values["store"]))
            if wants_browser(values["open"]):
                threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        serve(app, own, on_ready)
    log.info("stopped")


def token_of(path: Path | None) -> str | None:
    """The token, from a file or from the environment; not from the command line, which others can see."""
    token = os.environ.get("HOLDFAST_TOKEN")
    if path is not None:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(f"--token-file: {path} cannot be read: {getattr(error, 'strerror', error)}") from None
    if token is None:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise BadInputError(
            f"the token needs at least {SHORTEST_TOKEN} printable ASCII characters, such as `openssl rand -hex 24`"
        )
    return token


def wants_browser(wanted: bool | None) -> bool:
    """Whether to open the page: if it is said, or if somebody sits here with a screen."""
    if wanted is not None:
        return wanted
    screen = sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return screen and sys.stdout.isatty() and "CI" not in os.environ


@contextmanager
def _feeds(watching: Watching, place: str, values: dict[str, Any]) -> Iterator[None]:
    """What brings points in, besides HTTP."""
    with ExitStack() as open_ones:
        if place:
            from holdfast.server.live.feed import feeding

            wanted = {name: values[name] for name in ("key", "time", "form")}
            source = source_at(place, columns=values["columns"] or None, follow=True, **wanted)
            path = path_at(place)
            name, stream = (shown(place), shown(place)) if path is None else (str(path.resolve()), path.stem)
            log.info("watching %s", shown(place))
            open_ones.enter_context(feeding(watching, source, name, stream, values["joint"]))
        if values["demo"]:
            from holdfast.server.demo import demonstrating

            open_ones.enter_context(demonstrating(watching))
        yield


def _shown_store(place: str) -> str:
    return shown(place) if "://" in place else place
