"""Check the table of the page of the server against the benchmarks."""

from helpers.scripts import ROOT, import_script


def test_server_table_matches_the_benchmark():
    """After `limpet bench serve serve_crash --json FILE`: python lab/pages/server_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "server.md").read_text(encoding="utf-8")
    assert import_script("server_page").fill_page(text) == text
