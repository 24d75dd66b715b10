"""Take the pictures of the server's pages with chromium: `python lab/pages/server_pictures.py`."""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from limpet.plots._style import quantize_colors

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
VIEWPORT_SIZE = {"width": 1360, "height": 920}
DEVICE_SCALE_FACTOR = 1.5  # dots of the picture for one of the page
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STREAM_KEY = "pump 2/vibration"


def shrink_png(picture: bytes) -> bytes:
    """Reduce a picture to few colours, a third of the size."""
    pixels, file = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")), io.BytesIO()
    quantize_colors(pixels).save(file, "png")
    return file.getvalue()


def draw_monitor(page: Page, url: str) -> bytes:
    """Take the list of the demo's streams, and one of them in full."""
    page.goto(url)
    page.get_by_role("listitem").first.wait_for()
    page.goto(f"{url}/#stream={STREAM_KEY.replace(' ', '%20').replace('/', '%2F')}")
    page.locator(".uplot").first.wait_for()
    page.get_by_role("button", name="All", exact=True).click()
    page.wait_for_timeout(3000)
    return page.screenshot()


def draw_explorer(page: Page, url: str) -> bytes:
    """Take the explorer with its first stream."""
    page.goto(f"{url}/explorer")
    page.locator(".uplot").first.wait_for()
    page.wait_for_timeout(5000)  # until the trade-off is drawn
    return page.screenshot(full_page=True)


def main() -> None:
    """Start a server with the demo, and write the pictures."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("chromium is not installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "limpet", "serve", "--demo", "--port", "0", "--no-open"]
        server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            url = next(match[0] for line in server.stderr if (match := re.search(r"http://[\d.:]+", line)))
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=browser, args=CHROMIUM_FLAGS)
                for name, draw in {"monitor": draw_monitor, "explorer": draw_explorer}.items():
                    page = chromium.new_page(viewport=VIEWPORT_SIZE, device_scale_factor=DEVICE_SCALE_FACTOR)
                    (PICTURES / f"{name}.png").write_bytes(shrink_png(draw(page, url)))
                    print(f"Written: docs/pictures/{name}.png")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
