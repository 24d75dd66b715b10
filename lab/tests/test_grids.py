"""The paper's numbers, the grids that it chooses from, and the methods compared."""

import json
import math
from pathlib import Path

import pytest

from limpet_lab.paper import grids
from limpet_lab.paper.context import make_synthetic_methods
from limpet_lab.paper.published import load_paper_tables
from limpet_lab.paper.table_auc_anomaly import make_anomaly_methods
from limpet_lab.paper.table_auc_skab import make_skab_methods
from limpet_lab.paper.table_auc_well_log import make_well_log_methods

SHARED = Path(__file__).parents[3] / "shared"


def test_published_numbers_match_the_file():
    handed = SHARED / "paper" / "tables.json"
    if not handed.is_file():
        pytest.skip("the paper's tables are not next to the project (../shared/paper)")
    assert load_paper_tables() == json.loads(handed.read_text())


def test_grid_of_appendix_b_equals_the_published_rows():
    rows = [tuple(row[:3]) for row in load_paper_tables()["appendix_b_auc_of_sra"]["rows"]]
    assert [tuple(setting.values()) for setting in grids.SRA_APPENDIX_B] == rows
    assert len(rows) == 60


def test_every_table_compares_the_same_methods():
    """Well-log also has SRA with the grid of small γ."""
    learners, detectors = {"SRA", "Detector", "SDEM", "iEM", "sEM"}, {"ADWIN", "KSWIN", "PH", "PH-river"}
    expected = learners | detectors | {"constant", "random", "time"}
    for methods in (
        make_synthetic_methods(1),
        make_synthetic_methods(3),
        make_skab_methods(),
        make_anomaly_methods("SMTP"),
    ):
        assert {method.name for method in methods} == expected
    assert {method.name for method in make_well_log_methods()} == expected | {"SRA-small-gamma"}


def test_river_page_hinkley_has_every_published_delta_with_and_without_a_threshold():
    for methods in (
        make_synthetic_methods(1),
        make_well_log_methods(),
        make_skab_methods(),
        make_anomaly_methods("SMTP"),
    ):
        papers, rivers = (next(m for m in methods if m.name == name) for name in ("PH", "PH-river"))
        expected = [(s["delta"], threshold) for s in papers.settings for threshold in (50.0, math.inf)]
        assert [(s["delta"], s["threshold"]) for s in rivers.settings] == expected
