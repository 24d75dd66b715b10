"""Figure: the Well-log stream and its five annotations."""

from __future__ import annotations

from limpet.datasets import load_well_log
from limpet.report.html import Picture
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.plots.annotations import draw_annotations

TITLE = "Well-log: the stream and five annotations"


def run(context: ExperimentContext) -> Result:
    """One panel for each annotator."""
    stream = load_well_log()
    assert isinstance(stream.change_points, dict)
    picture = draw_annotations(stream.y[:, 0], stream.change_points, split=stream.split)
    words = "The Well-log stream, with the change points of each of five annotators."
    return Result(TITLE, parts=[Picture(picture, words, "Dashed lines are change points; the test part is shaded.")])
