"""A real server and a real browser for the tests of pages."""

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
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 240.0  # seconds: kernels may have to be compiled


class Served:
    """`limpet serve` on a free port of this machine; stopped and started again it is at the same address."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self.folder, self.token, self._port = folder, token, 0
        self.url = ""
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it can be asked."""
        store = self.folder / "store.db"
        command = [sys.executable, "-m", "limpet", "serve", "--port", str(self._port), "--database", str(store)]
        environment = {name: value for name, value in os.environ.items() if name != "LIMPET_TOKEN"}
        if self.token is not None:
            environment["LIMPET_TOKEN"] = self.token
        log = self.folder / "log.txt"
        with log.open("w") as told:
            self._process = subprocess.Popen([*command, "--no-open"], stderr=told, env=environment)
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"serving at (http://\S+:(\d+))", log.read_text())):
            if self._process.poll() is not None or time.monotonic() > until:
                self._process.kill()
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        self.url, self._port = found[1], int(found[2])

    def stop(self) -> None:
        """Ends it in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def post(self, key: str, body: Any) -> Any:
        """Posts points to a stream."""
        return self.call("POST", f"/streams/{quote(key, safe='')}/points", body)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Calls the API; what is wrong is an error."""
        answer = httpx.request(method, self.url + path, json=body, timeout=PATIENCE)
        answer.raise_for_status()
        return answer.json() if answer.content else None


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that is installed here."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS) as browser:
        yield browser


@contextmanager
def looking(browser: Browser, width: int = 1400, height: int = 900) -> Iterator[Page]:
    """A page of its own; whatever it complains about, violations of its policy among them, is an error."""
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        yield page
    # that a server is away, or refuses, is told by the browser as well
    told = [complaint for complaint in complaints if not complaint.startswith("Failed to load resource")]
    if told:
        raise AssertionError(told)


def wait_until(page: Page, expression: str, argument: Any = None, seconds: float = 20.0) -> Any:
    """The value of a JavaScript function once it is truthy; the page's policy does not let Playwright wait for it."""
    until = time.monotonic() + seconds
    while not (value := page.evaluate(expression, argument)):
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {expression}")
        page.wait_for_timeout(20)
    return value
