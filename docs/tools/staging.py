"""Stage the pages of the site: docs/ and files outside of it, in one folder, with rewritten links.

In the repository, pages link to files outside docs/ (results of benchmarks, the changelog) by relative paths, as GitHub
follows them. A site has one root, so those files are copied below it and the links to them are rewritten.
"""

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Pages outside docs/, by their path in the site.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "lab/README.md": "lab/README.md",
}
EXCLUDED = shutil.ignore_patterns("tools", "__pycache__")
FENCED = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^(<!-- .* -->)$", re.MULTILINE)  # of figures; Markdown needs a blank line between it and a table
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def site_path(path: str) -> str:
    """Return the path in the site of a file of the repository.

    >>> site_path("docs/guide/fleet.md"), site_path("CHANGELOG.md"), site_path("lab/results/spark.json")
    ('guide/fleet.md', 'changelog.md', 'lab/results/spark.json')
    """
    return OUTSIDE.get(path, path.removeprefix("docs/"))


def with_links(text: str, page: str) -> str:
    """Rewrite the links of a page of the repository for the site.

    >>> with_links("[guide](docs/guide/fleet.md#how-fast)", "CHANGELOG.md")
    '[guide](guide/fleet.md#how-fast)'
    >>> with_links("[figures](../../lab/results/spark.json), [here](models.md)", "docs/guide/spark.md")
    '[figures](../lab/results/spark.json), [here](models.md)'
    """
    here = os.path.dirname(page)

    def moved(link: re.Match[str]) -> str:
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link[2]):
            return link[0]
        target = os.path.normpath(os.path.join(here, link[2]))
        return link[1] + os.path.relpath(site_path(target), os.path.dirname(site_path(page)) or ".") + link[3]

    pieces = FENCED.split(text)
    return "".join(piece if i % 2 else MARK.sub(r"\n\1\n", LINK.sub(moved, piece)) for i, piece in enumerate(pieces))


def stage(folder: Path) -> None:
    """Fill the folder, which is emptied first, with the sources of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=EXCLUDED)
    shutil.copytree(ROOT / "lab" / "results", folder / "lab" / "results")
    for name, target in OUTSIDE.items():
        shutil.copy(ROOT / name, folder / target)
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in OUTSIDE)]
    for path in pages:
        page = path.relative_to(ROOT).as_posix()
        (folder / site_path(page)).write_text(with_links(path.read_text(encoding="utf-8"), page), encoding="utf-8")
