"""Check that CITATION.cff can be parsed and describes the software and the paper."""

import tomllib
from pathlib import Path

import pytest

import limpet

yaml = pytest.importorskip("yaml")
PATH = Path(__file__).parents[2] / "CITATION.cff"


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def test_the_software(citation):
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # required by the format
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == limpet.__version__
    assert citation["license"] == "BSD-3-Clause"
    assert citation["authors"] == [{"name": "The limpet developers"}]


def test_the_lab_has_the_same_version():
    project = tomllib.loads((PATH.parent / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == limpet.__version__


def test_the_paper(citation):
    paper = citation["preferred-citation"]
    assert paper["title"] == "Online Robust and Adaptive Learning from Data Streams"
    assert [author["family-names"] for author in paper["authors"]] == ["Fukushima", "Nitanda", "Yamanishi"]
    assert paper["year"] == 2020
    assert paper["identifiers"][0]["value"] == "arXiv:2007.12160"
