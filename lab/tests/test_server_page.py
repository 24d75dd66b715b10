"""Check the table of the page of the server against the benchmarks."""

from helpers.scripts import ROOT, script_of


def test_the_figures_of_the_server_are_those_of_the_benchmark():
    """After `limpet bench serve serve_crash --json FILE`: python lab/pages/server_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "server.md").read_text(encoding="utf-8")
    assert script_of("server_page").page_with_figures(text) == text
