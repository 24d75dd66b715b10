"""What the figures depend on besides the data: packages and sources."""

from __future__ import annotations

import os
import platform
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.datasets.fetching import VARIABLE
from holdfast.errors import MissingExtraError

PACKAGES = ("numpy", "numba", "river", "scikit-learn", "scipy")
NEEDED = {"matplotlib": "matplotlib", "river": "river", "scipy": "scipy", "scikit-learn": "sklearn", "pooch": "pooch"}


def require_packages() -> None:
    """Says at once which packages are missing, before any work is done; pooch only if data may be downloaded."""
    missing = [name for name, module in NEEDED.items() if find_spec(module) is None]
    if os.environ.get(VARIABLE):
        missing = [name for name in missing if name != "pooch"]
    if missing:
        names = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
        raise MissingExtraError(f"this needs {names}, not installed here: pip install 'holdfast[reproduce]'")


def versions() -> dict[str, str]:
    """Of holdfast, Python and the packages that compute."""
    from holdfast import __version__

    found = {"holdfast": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def stamp() -> dict[str, Any]:
    """Results under another stamp were made by other versions, or by other sources of ours."""
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return {"versions": versions(), "sources": digest.hexdigest()}
