"""Check the tables of the pages of river, scikit-learn and sktime against the benchmark."""

from importlib import import_module

import pytest

from helpers.scripts import import_script
from limpet_lab.bench import adapters


@pytest.mark.parametrize("library", ["river", "sklearn", "sktime"])
def test_adapter_tables_match_the_benchmark(library):
    """After `limpet bench adapters --json FILE`: python lab/pages/adapters_page.py FILE."""
    script = import_script("adapters_page")
    text = script.PAGES[library].read_text(encoding="utf-8")
    assert script.fill_page(library, text) == text


def test_benchmark_measures_every_adapter():
    names = [figure.name for figure in adapters.measure(quick=True)]
    for library, module in (("river", "river"), ("scikit-learn", "sklearn"), ("sktime", "sktime")):
        for adapter in import_module(f"limpet.adapters.{module}").__all__:
            assert any(name.startswith(f"{library} {adapter}, ") and name.endswith(": over the core") for name in names)
