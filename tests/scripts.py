"""The scripts in benchmarks/, as modules."""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent


def script_of(name):
    """The script of this name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)
