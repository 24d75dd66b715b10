"""Figure: estimated means and change scores on Well-log."""

from __future__ import annotations

from limpet.datasets import load_well_log
from limpet.report.html import Picture
from limpet_lab.paper import grids
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.paper.methods import FloatArray, LearnerMethod, make_iem, make_sdem, make_sem, make_sra
from limpet_lab.plots.estimates import draw_estimates

TITLE = "Well-log: estimated means and change scores"


def run(context: ExperimentContext) -> Result:
    """SRA, SDEM, iEM and sEM with the settings of the paper's figure."""
    stream = load_well_log()
    assert isinstance(stream.change_points, dict)
    methods = [
        LearnerMethod("SRA", [grids.SRA_WELL_LOG_FIGURE], make_sra, starts_on_drawn_points=True),
        LearnerMethod("SDEM", [{"n_components": 1, "r": 0.05}], make_sdem, starts_on_drawn_points=True),
        LearnerMethod("iEM", [{"n_components": 1}], make_iem, starts_on_drawn_points=True),
        LearnerMethod("sEM", [{"n_components": 1, "rho": 0.003}], make_sem, starts_on_drawn_points=True),
    ]
    rows: dict[str, tuple[FloatArray, FloatArray]] = {}
    for method in methods:
        outcome = method.run(method.settings[0], stream, 0, record=True)
        assert outcome.means is not None
        rows[method.name] = (outcome.means[:, 0, 0], outcome.scores[:, 0])
    picture = draw_estimates(stream.y[:, 0], rows, change_points=stream.change_points[2])
    rejected = int((rows["SRA"][1] != rows["SRA"][1]).sum())
    return Result(
        TITLE,
        parts=[
            Picture(
                picture,
                "For each of four methods the stream with the estimated mean, and the change score.",
                "Left the stream and the estimated mean, right the change score −log f; dashed lines are the change "
                "points of annotation 2. The settings are those of the paper’s figure.",
            ),
            f"SRA leaves {rejected} of {len(stream)} rows without a score: those it rejected. iEM, whose step falls as "
            "1/t, hardly follows the later changes; SDEM, with a step of 0.05, follows everything.",
        ],
    )
