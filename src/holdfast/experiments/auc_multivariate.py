"""Table: AUCs on the three-dimensional synthetic streams, as printed and as the notebooks drew them."""

from __future__ import annotations

from holdfast.experiments.auc_tables import fill_auc_table
from holdfast.experiments.lab import Lab
from holdfast.experiments.result import Result

TITLE = "AUC, three-dimensional synthetic streams"


def run(lab: Lab) -> Result:
    """Benefit against false alarms, T_b = 100, for every method, on both variants of the data."""
    result = Result(TITLE)
    fill_auc_table(
        lab,
        result,
        "auc_multivariate",
        3,
        "printed",
        "The data as the paper prints them. A detector is run on each variable and the best one kept.",
    )
    fill_auc_table(
        lab,
        result,
        "auc_multivariate_notebook",
        3,
        "notebook",
        "The data as the authors’ notebooks drew them: means ±(.5, .5, .5) → ±(1, 1, 1), overlapping components.",
    )
    result.parts = [
        *result.parts,
        "On the printed data the means jump so far that with the paper’s γ = 7 one component is locked out: a "
        "quarter of all points is dropped for ever, and those near the change, which should raise the alarm, are "
        "dropped with them and have no score. With a larger γ the outliers come in. To reach 0.753 a method would "
        "have to be the oracle, which knows both regimes and every outlier; on the gradual stream the paper’s cell "
        "is far above the oracle, and what is above the oracle does not come from detecting the change.",
        "On the notebooks’ data the components overlap, the change is small in every direction, and the oracle "
        "itself is far below the paper’s cells: −log f cannot have given them on these streams.",
        "Page–Hinkley on the printed abrupt stream is the clearest artefact: a variable whose mean is above δ before "
        "the change and below it after makes the paper’s sum climb up to the change and fall from it, a perfect peak "
        "that has nothing to do with noticing.",
    ]
    return result
