"""Draw the gallery: small scripts in docs/gallery, each of which writes a picture with its name.

`python docs/tools/gallery.py` runs them all and writes docs/gallery.md, which shows code and pictures.
"""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "gallery"
# In the order of the page: name and title of each script.
TITLES = {
    "level-shift": "A level that shifts",
    "lock-out": "Lock-out and re-initialization",
    "season": "A season",
    "sensor": "A machine with gaps and spikes",
    "fleet": "A fleet",
    "mixture": "A mixture",
    "regression": "Corrupted targets",
    "p-values": "p-values",
    "trade-off": "The trade-off",
}
ABOVE = """\
# Gallery

Pictures from a few lines. Each picture is drawn by the script below it whenever this site is built; it requires
`pip install 'limpet[plots]'`.
"""


def draw(name: str, folder: Path) -> Path:
    """Run a script in a folder, and return the path of its picture."""
    environment = os.environ | {"MPLBACKEND": "agg", "LIMPET_QUIET": "1"}
    subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], cwd=folder, env=environment, check=True)
    return folder / f"{name}.png"


def draw_all(folder: Path) -> list[Path]:
    """Draw every picture into a folder."""
    return [draw(name, folder) for name in TITLES]


def page() -> str:
    """Return the page; the docstring of each script describes its picture."""
    text = ABOVE
    for name, title in TITLES.items():
        first, _, code = (FOLDER / f"{name}.py").read_text(encoding="utf-8").partition("\n")
        words = first.strip('"')
        text += f"\n## {title}\n\n{words}\n\n![{words}](gallery/{name}.png)\n\n```python\n{code.strip()}\n```\n"
    return text


if __name__ == "__main__":
    draw_all(FOLDER)
    (FOLDER.parent / "gallery.md").write_text(page(), encoding="utf-8")
