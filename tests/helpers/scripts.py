"""Import the scripts of lab/pages."""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def import_script(name):
    """Import a script."""
    sys.path.insert(0, str(ROOT / "lab" / "pages"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)
