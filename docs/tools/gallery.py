"""The gallery: small scripts in docs/gallery, each of which leaves a picture under its own name.

python docs/tools/gallery.py
runs them all and writes docs/gallery.md, which shows what they are: code and picture.
"""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "gallery"
# In the order of the page: the name of a script, and what it is about.
TITLES = {
    "level-shift": "A level that shifts",
    "lock-out": "Lock-out and rescue",
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

What a few lines draw. Each picture is made by the script under it, as it stands, whenever this site is built; it takes
`pip install 'limpet[plots]'`.
"""


def draw(name: str, folder: Path) -> Path:
    """Runs a script in a folder, and returns the picture that it leaves there under its own name."""
    environment = os.environ | {"MPLBACKEND": "agg", "LIMPET_QUIET": "1"}
    subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], cwd=folder, env=environment, check=True)
    return folder / f"{name}.png"


def draw_all(folder: Path) -> list[Path]:
    """Every picture, drawn in this folder."""
    return [draw(name, folder) for name in TITLES]


def page() -> str:
    """The page, from the scripts: the first line of each says what is to be seen."""
    text = ABOVE
    for name, title in TITLES.items():
        first, _, code = (FOLDER / f"{name}.py").read_text(encoding="utf-8").partition("\n")
        words = first.strip('"')
        text += f"\n## {title}\n\n{words}\n\n![{words}](gallery/{name}.png)\n\n```python\n{code.strip()}\n```\n"
    return text


if __name__ == "__main__":
    draw_all(FOLDER)
    (FOLDER.parent / "gallery.md").write_text(page(), encoding="utf-8")
