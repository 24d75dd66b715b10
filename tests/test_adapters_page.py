"""The tables of the pages of river, scikit-learn and sktime are those of the benchmark."""

import json

import pytest

from holdfast.benchmarks import adapters
from scripts import ROOT, script_of


@pytest.mark.parametrize("library", ["river", "sklearn", "sktime"])
def test_the_figures_of_the_adapters_are_those_of_the_benchmark(library):
    """After `holdfast bench adapters --json FILE`: python benchmarks/adapters_page.py FILE."""
    script = script_of("adapters_page")
    text = script.PAGES[library].read_text(encoding="utf-8")
    assert script.page_with_figures(library, text) == text
    assert not json.loads((ROOT / "benchmarks" / "adapters.json").read_text(encoding="utf-8"))["quick"]


def test_the_benchmark_of_adapters_measures_each():
    names = [figure.name for figure in adapters.measure(quick=True)]
    for library in ("river AnomalyDetector", "river DriftDetector", "scikit-learn", "sktime"):
        assert any(name.startswith(library) for name in names)
    assert sum(name.endswith(": over the core") for name in names) == 7
