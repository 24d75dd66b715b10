"""The pages as the site takes them: docs/ and what stands beside it, in one folder, with links that lead there.

In the repository pages link to files outside docs/ (figures of benchmarks, the list of changes) by their relative
paths, as GitHub follows them. A site has one root, so those files are put under it and the links to them rewritten.
"""

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Where a file of the repository lies in the site; docs/ is its root.
BESIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "readme.md"}
LEFT_OUT = shutil.ignore_patterns("tools", "__pycache__")
FENCED = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^(<!-- .* -->)$", re.MULTILINE)  # of figures; Markdown wants tables and lists apart from it
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def place_of(path: str) -> str:
    """Where a file of the repository lies in the site.

    >>> place_of("docs/guide/fleet.md"), place_of("CHANGELOG.md"), place_of("lab/results/spark.json")
    ('guide/fleet.md', 'changelog.md', 'lab/results/spark.json')
    """
    return BESIDE.get(path, path.removeprefix("docs/"))


def with_links(text: str, page: str) -> str:
    """The text of a page of the repository, with its links as the site needs them.

    >>> with_links("[what](docs/guide/fleet.md#how-fast)", "CHANGELOG.md")
    '[what](guide/fleet.md#how-fast)'
    >>> with_links("[figures](../../lab/results/spark.json), [here](models.md)", "docs/guide/spark.md")
    '[figures](../lab/results/spark.json), [here](models.md)'
    """
    here = os.path.dirname(page)

    def moved(link: re.Match[str]) -> str:
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link[2]):
            return link[0]
        target = os.path.normpath(os.path.join(here, link[2]))
        return link[1] + os.path.relpath(place_of(target), os.path.dirname(place_of(page)) or ".") + link[3]

    pieces = FENCED.split(text)
    return "".join(piece if i % 2 else MARK.sub(r"\n\1\n", LINK.sub(moved, piece)) for i, piece in enumerate(pieces))


def stage(folder: Path) -> None:
    """Puts into the folder, which is made anew, all that the site is built from."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=LEFT_OUT)
    figures = folder / "benchmarks"
    figures.mkdir()
    for path in [*(ROOT / "lab" / "pages").glob("*.json"), ROOT / "lab" / "pages" / "README.md"]:
        shutil.copy(path, figures)
    for name, target in BESIDE.items():
        shutil.copy(ROOT / name, folder / target)
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "lab" / "pages" / "README.md", *(ROOT / name for name in BESIDE)]
    for path in pages:
        page = path.relative_to(ROOT).as_posix()
        (folder / place_of(page)).write_text(with_links(path.read_text(encoding="utf-8"), page), encoding="utf-8")
