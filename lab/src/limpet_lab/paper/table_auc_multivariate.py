"""Table: AUCs on the three-dimensional synthetic streams, as printed and as the notebooks drew them."""

from __future__ import annotations

from limpet_lab.paper._auc_tables import fill_auc_table
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext

TITLE = "AUC, three-dimensional synthetic streams"


def run(context: ExperimentContext) -> Result:
    """Benefit against false alarms, T_b = 100, for every method, on both variants of the data."""
    result = Result(TITLE)
    fill_auc_table(
        context,
        result,
        "auc_multivariate",
        3,
        "printed",
        "The data as the paper prints them. A detector is run on each variable and the best one kept.",
    )
    fill_auc_table(
        context,
        result,
        "auc_multivariate_notebook",
        3,
        "notebook",
        "The data as the authors’ notebooks drew them: means ±(.5, .5, .5) → ±(1, 1, 1), overlapping components.",
    )
    result.parts = [
        *result.parts,
        "On the printed data the means jump so far that with the paper’s γ = 7 one component is locked out: a "
        "quarter of all points is rejected permanently, and about half of those right after the change, which should "
        "raise the alarm, have no score. With a larger γ the outliers come in. The norm is not to blame: with the one "
        "of the paper’s equations, over all statistics (SRA-full-norm), half of the points and more are rejected "
        "before the change and nearly all after it. The paper’s 0.753 on abrupt changes is what the true parameters "
        "reach; its 0.721 on gradual ones is more than both marks reach.",
        "Detector gives every row a change score, and the score has a memory, so that its mark is truth-memory. As "
        "on the univariate streams, part of its AUC on the printed data is level: the score on stable rows is lower "
        "after the change than before. Where it is above the marks it is not better than the truth; what it owes to "
        "detection is its AUC against rows before the change alone.",
        "On the notebooks’ data the components overlap and the change is small in every direction: point by point even "
        "the true parameters are near 0.5. With memory much more is possible (truth-memory), but SRA’s score has none.",
        "Page–Hinkley on the printed abrupt stream is the clearest artefact: a variable whose mean is above δ before "
        "the change and below it after makes the paper’s sum climb up to the change and fall from it, a perfect peak "
        "that has nothing to do with noticing.",
    ]
    return result
