"""Figures: sample streams, univariate and three-dimensional."""

from __future__ import annotations

from limpet.report.html import Picture
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import CHANGE_KINDS, ExperimentContext, make_synthetic_stream
from limpet_lab.plots.sample_streams import draw_samples

TITLE = "Sample streams"


def run(context: ExperimentContext) -> Result:
    """One abrupt and one gradual stream, in one dimension and in three."""
    parts = []
    for dim in (1, 3):
        streams = [make_synthetic_stream(kind, dim) for kind in CHANGE_KINDS]
        words = f"An abrupt and a gradual stream in {dim} dimension{'s' * (dim > 1)}, outliers circled."
        caption = f"{words} α = 0.99, U = 20. The dashed line is the change; near it the same on a larger scale."
        parts.append(Picture(draw_samples(streams), words, caption))
    return Result(TITLE, parts=parts)
