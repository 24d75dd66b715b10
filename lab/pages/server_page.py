"""Write the table of docs/guide/server.md from lab/results.

After `limpet bench serve serve_crash --json FILE`, run `python lab/pages/server_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import ROOT, format_figure_table, import_run, insert_section, load_figures

PAGE = ROOT / "docs" / "guide" / "server.md"
NAMES = ("serve", "serve_crash")


def fill_page(text: str) -> str:
    """Insert the table into the text of the page."""
    return insert_section(
        text, "figures", format_figure_table(figure for name in NAMES for figure in load_figures(name).values())
    )


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), NAMES)
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
