"""A server process and a browser for tests of pages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TIMEOUT_S = 240.0  # kernels may have to be compiled


class ServerProcess:
    """`limpet serve` on a free port of this machine, which a restart keeps."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self.folder, self.token, self._port = folder, token, 0
        self.url = ""
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it serves."""
        store = self.folder / "store.db"
        command = [sys.executable, "-m", "limpet", "serve", "--port", str(self._port), "--database", str(store)]
        environment = {name: value for name, value in os.environ.items() if name != "LIMPET_TOKEN"}
        if self.token is not None:
            environment["LIMPET_TOKEN"] = self.token
        log = self.folder / "log.txt"
        with log.open("w") as stderr:
            self._process = subprocess.Popen([*command, "--no-open"], stderr=stderr, env=environment)
        until = time.monotonic() + TIMEOUT_S
        while not (match := re.search(r"serving at (http://\S+:(\d+))", log.read_text())):
            if self._process.poll() is not None or time.monotonic() > until:
                self._process.kill()
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        self.url, self._port = match[1], int(match[2])

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(TIMEOUT_S)

    def post(self, key: str, body: Any) -> Any:
        """Post points to a stream."""
        return self.call("POST", f"/streams/{quote(key, safe='')}/points", body)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API; raise on an error."""
        response = httpx.request(method, self.url + path, json=body, timeout=TIMEOUT_S)
        response.raise_for_status()
        return response.json() if response.content else None


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the installed browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, play.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS) as browser:
        yield browser


@contextmanager
def open_page(browser: Browser, width: int = 1400, height: int = 900) -> Iterator[Page]:
    """Open a page; errors in its console, such as violations of its policy, fail the test."""
    console_errors: list[str] = []
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        page.on("console", lambda message: console_errors.append(message.text) if message.type == "error" else None)
        yield page
    # the browser also logs requests that failed
    errors = [text for text in console_errors if not text.startswith("Failed to load resource")]
    if errors:
        raise AssertionError(errors)


def wait_until(page: Page, expression: str, argument: Any = None, seconds: float = 20.0) -> Any:
    """Return the value of a JavaScript function once it is truthy; the page's policy blocks Playwright's own wait."""
    until = time.monotonic() + seconds
    while not (value := page.evaluate(expression, argument)):
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {expression}")
        page.wait_for_timeout(20)
    return value
