"""Write the table of docs/guide/streams.md from lab/results.

After `limpet bench detect watch_crash jetstream --json FILE`, run `python lab/pages/streams_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import ROOT, figure_table, load, put, take

PAGE = ROOT / "docs" / "guide" / "streams.md"
NAMES = ("detect", "watch_crash", "jetstream")


def page_with_figures(text: str) -> str:
    """Insert the table into the text of the page."""
    return put(text, "figures", figure_table(figure for name in NAMES for figure in load(name).values()))


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), NAMES)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
