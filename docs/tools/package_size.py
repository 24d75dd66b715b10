"""Measure the package: files, lines, import layers, modules with one importer, and files that a point crosses.

python docs/tools/package_size.py            the figures, and whether each is within its limit; exits with 1 if not
python docs/tools/package_size.py --importers   also lists the modules with a single importer
python docs/tools/package_size.py --walks    also runs `limpet detect` and posts a point to the server
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "limpet"
MAX_FILES, MAX_LINES, MAX_LAYERS = 290, 37_000, 12
MAX_SINGLE_IMPORTERS = 40  # commands, routes, sources, sinks, components …: each a separate subject
MEDIAN_LINES = (80, 160)
MAX_FILES_CROSSED = {"a point posted to the server": 22, "limpet detect --no-report, no alarm": 45}


def sources() -> list[Path]:
    """Return the Python files of the wheel."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def lines_by_file() -> dict[Path, int]:
    """Return the number of lines of each file."""
    return {path: path.read_text(encoding="utf-8").count("\n") for path in sources()}


def docstring_lines() -> int:
    """Return the number of lines of all docstrings."""
    trees = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in sources())
    bodies = (getattr(node, "body", None) for tree in trees for node in tree if not isinstance(node, ast.Lambda))
    first = (body[0] for body in bodies if isinstance(body, list) and body and isinstance(body[0], ast.Expr))
    return sum(node.end_lineno - node.lineno + 1 for node in first if isinstance(node.value, ast.Constant))


def layers() -> list[str]:
    """Return the layers of the import contract, highest first."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(config["tool"]["importlinter"]["contracts"][0]["layers"])


def single_importers() -> dict[str, str]:
    """Return the modules that one other module imports, with that module.

    Subpackages are left out, and public modules that their own package imports.
    """
    import grimp

    graph = grimp.build_graph("limpet")
    importers = {module: graph.find_modules_that_directly_import(module) for module in sorted(graph.modules)}
    return {
        module: next(iter(by))
        for module, by in importers.items()
        if len(by) == 1
        and not graph.find_children(module)
        and (module.rpartition(".")[2][0] == "_" or by != {module.rpartition(".")[0]})
    }


@contextmanager
def recorded() -> Iterator[Callable[[], set[str]]]:
    """Record the files of the package in which functions run, in all threads started within; yields a reset."""
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(PACKAGE)):
            files.add(code.co_filename)

    def restart() -> set[str]:
        files.clear()
        return files

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield restart
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def files_of_detect(folder: Path, shift: int = 0, report: bool = False) -> set[str]:
    """Return the files that `limpet detect` crosses, compilation and imports excluded; a shift raises an alarm."""
    from limpet.cli.main import app

    values = (20 + i % 7 + shift * (i >= 1500) for i in range(2000))
    (folder / "some.csv").write_text("time,level\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    reporting = ["--report", str(folder / "report.html")] if report else ["--no-report"]
    words = ["detect", str(folder / "some.csv"), *reporting, "--alarms", str(folder / "alarms.csv")]
    with redirect_stdout(io.StringIO()):
        app(words, standalone_mode=False)
        with recorded() as restart:
            files = restart()
            app(words, standalone_mode=False)
    return set(files)


def files_of_post(folder: Path) -> set[str]:
    """Return the files that one number crosses: validated, learned, stored, and returned with its result."""
    from fastapi.testclient import TestClient

    import limpet as lp
    from limpet.server.app import make_app
    from limpet.server.monitor import MonitorConfig

    config = MonitorConfig(str(folder / "limpet.db"), lp.Detector())
    with recorded() as restart, TestClient(make_app(config), base_url="http://localhost") as client:
        for _ in range(300):
            files = restart()
            client.post("/streams/pump/points", json=1.5).raise_for_status()
        return set(files)


def main() -> int:
    """Print the figures; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure the package against its limits.")
    parser.add_argument("--importers", action="store_true", help="list the modules with a single importer")
    parser.add_argument("--walks", action="store_true", help="count the files that a point crosses")
    options = parser.parse_args()
    lines, low, high = lines_by_file(), *MEDIAN_LINES
    median = statistics.median(lines.values())
    importers = single_importers()
    figures = [
        ("Python files", len(lines), f"≤ {MAX_FILES}", len(lines) <= MAX_FILES),
        ("lines", sum(lines.values()), f"≤ {MAX_LINES}", sum(lines.values()) <= MAX_LINES),
        ("lines of docstrings, among them", docstring_lines(), "", True),
        ("median lines of a file", median, f"{low} … {high}", low <= median <= high),
        ("most lines of a file", max(lines.values()), "", True),
        ("import layers", len(layers()), f"≤ {MAX_LAYERS}", len(layers()) <= MAX_LAYERS),
        (
            "modules with a single importer",
            len(importers),
            f"≤ {MAX_SINGLE_IMPORTERS}",
            len(importers) <= MAX_SINGLE_IMPORTERS,
        ),
    ]
    if options.walks:
        walks: dict[str, Callable[[Path], set[str]]] = {
            "a point posted to the server": files_of_post,
            "limpet detect --no-report, no alarm": files_of_detect,
            "limpet detect, an alarm and a report": partial(files_of_detect, shift=20, report=True),
        }
        for name, walk in walks.items():
            with tempfile.TemporaryDirectory() as folder:
                n_files, most = len(walk(Path(folder))), MAX_FILES_CROSSED.get(name)
            limit = "" if most is None else f"≤ {most}"
            figures.append((f"files crossed by {name}", n_files, limit, most is None or n_files <= most))
    for name, value, limit, is_kept in figures:
        print(f"{name:55}{value:>9,.0f}  {limit:>10}  {'' if not limit else '✓' if is_kept else '✗'}".rstrip())
    if options.importers:
        print(*(f"{module:55}{importer}" for module, importer in importers.items()), sep="\n")
    return 0 if all(is_kept for *_, is_kept in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
