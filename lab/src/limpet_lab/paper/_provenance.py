"""Versions and sources on which the figures depend."""

from __future__ import annotations

import os
import platform
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from limpet._optional import require_installed
from limpet.datasets._fetch import DATA_FOLDER_VARIABLE

PACKAGES = ("numpy", "numba", "river", "scikit-learn", "scipy")
REQUIRED_MODULES = ("matplotlib", "river", "scipy", "sklearn")


def require_packages() -> None:
    """Report missing packages before any work is done; pooch only if data may be downloaded."""
    fetching = () if os.environ.get(DATA_FOLDER_VARIABLE) else ("pooch",)
    require_installed("reproducing the paper", "limpet-lab[reproduce]", *REQUIRED_MODULES, *fetching)


def get_versions() -> dict[str, str]:
    """Return the versions of limpet, Python and the packages that compute."""
    from limpet import __version__

    versions = {"limpet": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def make_stamp() -> dict[str, Any]:
    """Return versions and a digest of the sources, by which results are recognized."""
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return {"versions": get_versions(), "sources": digest.hexdigest()}
