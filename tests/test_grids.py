"""The paper's numbers, the grids that it chooses from, and the methods compared."""

import json
import math
from pathlib import Path

import pytest

from holdfast.experiments import grids
from holdfast.experiments.auc_anomaly import anomaly_methods
from holdfast.experiments.auc_skab import skab_methods
from holdfast.experiments.auc_well_log import well_log_methods
from holdfast.experiments.lab import synthetic_methods
from holdfast.experiments.paper import paper_tables

SHARED = Path(__file__).parents[2] / "shared"


def test_the_papers_numbers_are_those_handed_down():
    handed = SHARED / "paper" / "tables.json"
    if not handed.is_file():
        pytest.skip("the paper's tables are not beside the project (../shared/paper)")
    assert paper_tables() == json.loads(handed.read_text())


def test_appendix_b_has_the_papers_sixty_rows():
    rows = [tuple(row[:3]) for row in paper_tables()["appendix_b_auc_of_sra"]["rows"]]
    assert [tuple(setting.values()) for setting in grids.SRA_APPENDIX_B] == rows
    assert len(rows) == 60


def test_the_printed_settings_are_those_in_the_papers_text():
    """On Well-log the paper names three settings with one ρ for each annotation; the one with γ = 2·10⁶ is taken."""
    expected = {
        "mse_univariate": {"abrupt": (3.0, 0.1, 5.0), "gradual": (3.0, 0.1, 5.0)},
        "auc_univariate": {"abrupt": (3.0, 0.1, 10.0), "gradual": (1.0, 0.5, 5.0)},
        "mse_multivariate": {"abrupt": (7.0, 0.5, 5.0), "gradual": (7.0, 0.5, 5.0)},
        "auc_multivariate": {"abrupt": (7.0, 0.5, 5.0), "gradual": (3.0, 0.5, 5.0)},
        "auc_well_log": {
            "annotation_1": (2e6, 2e4, 4e6, 1),
            "annotation_2": (2e6, 2e4, 4e6, 1),
            "annotation_3": (2e6, 2e4, 4e6, 1),
            "annotation_4": (2e6, 2e4, 8e6, 1),
            "annotation_5": (2e6, 2e4, 4e6, 1),
        },
        "auc_skab": {"Tb_20": (80.0, 5.0, 50000.0, 1), "Tb_50": (80.0, 5.0, 50000.0, 1)},
        "auc_anomaly": {"SMTP": (10.0, 0.5, 5.0, 2), "THYROID": (10.0, 0.5, 5.0, 3)},
    }
    names = ("gamma", "beta", "M", "n_components")
    for table, columns in expected.items():
        settings = {column: dict(zip(names, values, strict=False)) for column, values in columns.items()}
        assert grids.SRA_PRINTED[table] == settings
    assert set(grids.SRA_PRINTED) == set(expected)
    assert grids.SRA_WELL_LOG_FIGURE == {"n_components": 1, "gamma": 2e4, "beta": 200.0, "M": 4e4}


def test_what_the_paper_says_it_chose_is_in_the_grids():
    for kind in ("abrupt", "gradual"):
        assert grids.SRA_PRINTED["mse_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["auc_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["mse_multivariate"][kind] in grids.SRA_MULTIVARIATE
        assert grids.SRA_PRINTED["auc_multivariate"][kind] in grids.SRA_MULTIVARIATE
    for printed in grids.SRA_PRINTED["auc_well_log"].values():
        assert printed in well_log_methods()[0].settings
    assert grids.SRA_WELL_LOG_FIGURE in grids.SRA_WELL_LOG
    for printed in grids.SRA_PRINTED["auc_skab"].values():
        assert printed in skab_methods()[0].settings
    for name, printed in grids.SRA_PRINTED["auc_anomaly"].items():
        assert printed in anomaly_methods(name)[0].settings
    assert len(grids.SRA_UNIVARIATE) == 100
    assert len(grids.SRA_MULTIVARIATE) == 120
    assert len(grids.SRA_WELL_LOG) == 37


def test_all_seven_methods_and_the_dummies_are_in_every_comparison():
    expected = {"SRA", "SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH", "constant", "random", "time", "PH-river"}
    for methods in (synthetic_methods(1), synthetic_methods(3), skab_methods(), anomaly_methods("SMTP")):
        assert {method.name for method in methods} == expected
    assert {method.name for method in well_log_methods()} == expected | {"SRA-small-gamma"}


def test_rivers_page_hinkley_may_forget_or_not_with_every_delta_of_the_papers():
    for methods in (synthetic_methods(1), well_log_methods(), skab_methods(), anomaly_methods("SMTP")):
        papers, rivers = (next(m for m in methods if m.name == name) for name in ("PH", "PH-river"))
        expected = [(s["delta"], threshold) for s in papers.settings for threshold in (50.0, math.inf)]
        assert [(s["delta"], s["threshold"]) for s in rivers.settings] == expected
