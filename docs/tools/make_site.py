"""Build the site and check it: `make docs`.

The pages are staged in build/pages, the pictures of the gallery are drawn there, and the site is built into site/ in
strict mode. Then links are checked, and that nothing is loaded from another host.
"""

import os
import subprocess
import sys
from pathlib import Path

from checking import faults
from gallery import draw_all
from staging import ROOT, stage

PAGES, SITE = ROOT / "build" / "pages", ROOT / "site"


def build() -> int:
    """Return 0 if the site was built without faults."""
    stage(PAGES)
    draw_all(PAGES / "gallery")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    paths = [str(ROOT / "docs"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        return 1
    faults_found = faults(SITE)
    print(*faults_found, sep="\n", file=sys.stderr)
    pages = sum(1 for _ in Path(SITE).rglob("*.html"))
    print(f"site/index.html: {pages} pages, {len(faults_found) or 'no'} broken links or external requests")
    return 1 if faults_found else 0


if __name__ == "__main__":
    sys.exit(build())
