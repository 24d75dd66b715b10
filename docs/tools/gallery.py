"""Draws the pictures of the gallery: runs every script of docs/gallery in a process of its own."""

import subprocess
import sys
from pathlib import Path

SCRIPTS = sorted((Path(__file__).parents[1] / "gallery").glob("*.py"))


def draw(script: Path, folder: Path) -> Path:
    """Runs a script in a folder, and returns the picture that it leaves there under its own name."""
    subprocess.run([sys.executable, str(script)], cwd=folder, check=True)
    return folder / f"{script.stem}.png"


def draw_all(folder: Path) -> list[Path]:
    """Every picture, drawn in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return [draw(script, folder) for script in SCRIPTS]
