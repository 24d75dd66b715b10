"""CITATION.cff: it can be read, and says of the software and of the paper what is true."""

from pathlib import Path

import pytest

import limpet

yaml = pytest.importorskip("yaml")
PATH = Path(__file__).parents[2] / "CITATION.cff"


@pytest.fixture(scope="module")
def told():
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def test_the_software(told):
    assert {"cff-version", "message", "title", "authors"} <= set(told)  # what the format asks for
    assert (told["cff-version"], told["type"]) == ("1.2.0", "software")
    assert told["version"] == limpet.__version__
    assert told["license"] == "BSD-3-Clause"
    assert told["authors"] == [{"name": "The limpet developers"}]


def test_the_paper(told):
    paper = told["preferred-citation"]
    assert paper["title"] == "Online Robust and Adaptive Learning from Data Streams"
    assert [author["family-names"] for author in paper["authors"]] == ["Fukushima", "Nitanda", "Yamanishi"]
    assert paper["year"] == 2020
    assert paper["identifiers"][0]["value"] == "arXiv:2007.12160"
