"""The libraries' own checks, all of them, on every adapter: `make test-certified`. Their numbers are printed."""

import csv
import os
import warnings

import numpy as np
import pytest

pytestmark = [
    pytest.mark.certified,
    pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning"),  # of checks on ten rows, or on constants
]

MIN_RIVER_CHECKS, MIN_SKTIME_CHECKS = 26, 93
MIN_SKLEARN_CHECKS = {
    "OutlierDetector": 46,
    "StreamScores": 46,
    "OnlineGaussianMixture": 40,
    "RobustRegressor": 51,
    "RobustClassifier": 54,
}


@pytest.fixture
def report(capsys):
    """Print the number of checks, even if output is captured."""

    def print_report(library, name, n, skipped=0):
        with capsys.disabled():
            print(f"\n{library}: {n} checks of {name} passed, {skipped or 'none'} skipped")

    return print_report


# River


@pytest.fixture
def credit_card(tmp_path, monkeypatch):
    """Write a local file where river would download its data set of card frauds: 30 features, 1 % frauds.

    River knows it by its size alone, so the file is as long as the true one; the checks read 10,000 rows of it.
    """
    from river import datasets

    monkeypatch.setenv("RIVER_DATA", str(tmp_path))
    dataset, rng, n = datasets.CreditCard(), np.random.default_rng(0), 10_001
    fraud = rng.random(n) < 0.01
    features = rng.standard_t(5, (n, 28)) + np.where(fraud[:, None], rng.normal(2.0, 2.0, (n, 28)), 0.0)
    amounts, times = np.exp(rng.normal(3.0, 1.0, n)), 0.5 * np.arange(n)
    dataset.path.parent.mkdir(parents=True)
    with dataset.path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Time", *(f"V{i}" for i in range(1, 29)), "Amount", "Class"])
        table = np.column_stack([times, features, amounts]).round(6).tolist()
        rows.writerows([*row, int(label)] for row, label in zip(table, fraud, strict=True))
    os.truncate(dataset.path, dataset.size)
    assert dataset.is_downloaded


def river_detectors():
    river = pytest.importorskip("limpet.adapters.river")
    import limpet as lp

    return [river.AnomalyDetector(), river.AnomalyDetector(lp.SRA(rho=0.01)), river.DriftDetector()]


@pytest.mark.parametrize("which", range(3), ids=["detector", "sra", "drift"])
def test_river(which, credit_card, report):
    from river import checks

    model = river_detectors()[which]
    assert not getattr(model, "_unit_test_skips", set)()
    names = [check.__name__ for check in checks.yield_checks(model)]
    checks.check_estimator(model) if which < 2 else [check(model.clone()) for check in checks.yield_checks(model)]
    assert len(names) >= (MIN_RIVER_CHECKS if which < 2 else 14)
    report("river", type(model).__name__ + ("(SRA(rho=0.01))" if which == 1 else ""), len(names))


# scikit-learn


@pytest.mark.parametrize("name", MIN_SKLEARN_CHECKS)
def test_sklearn(name, report):
    from sklearn.utils.estimator_checks import check_estimator

    from limpet.adapters import sklearn as adapters

    assert set(adapters.__all__) == set(MIN_SKLEARN_CHECKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(getattr(adapters, name)(), on_skip=None)  # raises where one fails
    passed = sum(result["status"] == "passed" for result in results)
    others = {result["check_name"] for result in results if result["status"] != "passed"}
    # This check requires SCIPY_ARRAY_API=1 at import, as in `make test-certified`.
    assert others <= (set() if os.environ.get("SCIPY_ARRAY_API") == "1" else {"check_array_api_input"})
    assert passed >= MIN_SKLEARN_CHECKS[name] - len(others)
    report("scikit-learn", name, passed, len(others))


# sktime


@pytest.mark.parametrize("name", ["ChangePointDetector", "AnomalyDetector"])
def test_sktime(name, report):
    from sktime.utils.estimator_checks import check_estimator

    from limpet.adapters import sktime as adapters

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(getattr(adapters, name), raise_exceptions=True, verbose=False)
    assert set(results.values()) == {"PASSED"}
    assert len(results) >= MIN_SKTIME_CHECKS
    report("sktime", name, len(results))
