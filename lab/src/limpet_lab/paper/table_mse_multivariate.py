"""Table: mean squared errors of the means on the three-dimensional synthetic streams, both variants."""

from __future__ import annotations

from limpet_lab.paper._mse_tables import fill_mse_table
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext

TITLE = "MSE of the means, three-dimensional synthetic streams"


def run(context: ExperimentContext) -> Result:
    """The printed data and the notebooks', each with the same printed cells, for orientation only."""
    result = Result(
        TITLE,
        parts=[
            "The paper’s table is not of the data the paper prints: its baselines’ 1.47 and 5.84 are what the "
            "notebooks’ means, ±(.5, .5, .5) → ±(1, 1, 1), give when both estimates collapse to zero. Both variants "
            "stand here; the paper’s numbers are repeated next to each for orientation only."
        ],
    )
    fill_mse_table(context, result, "mse_multivariate", 3, "printed", compared=False)
    fill_mse_table(context, result, "mse_multivariate_notebook", 3, "notebook", compared=False)
    result.parts = [
        *result.parts,
        "On the printed abrupt data ‖Δμ‖² = 63: an S_ac of 0.029 would allow five points of delay. Plain SRA locks one "
        "component out instead (S_ac near 50), because the jump is larger than γ. Getting out of that takes more than "
        "the published algorithm: Detector re-initializes on the latest points when these form another regime.",
        "On the notebooks’ data the two components overlap (less than two standard deviations apart), and ten points "
        "are a poor start for them: the errors vary widely from stream to stream.",
    ]
    return result
