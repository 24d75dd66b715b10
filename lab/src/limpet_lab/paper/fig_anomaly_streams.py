"""Figures: the SMTP and THYROID streams."""

from __future__ import annotations

import numpy as np

from limpet.datasets import load_smtp, load_thyroid
from limpet.report.html import Picture
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.plots.multivariate import draw_channels

TITLE = "SMTP and THYROID: the streams"
SMTP_VARIABLES = ["log duration", "log bytes sent", "log bytes received"]


def run(context: ExperimentContext) -> Result:
    """All variables; red lines mark the labelled anomalies."""
    parts = []
    for load in (load_smtp, load_thyroid):
        stream = load()
        assert stream.labels is not None
        anomalies = np.flatnonzero(stream.labels).tolist()
        names = SMTP_VARIABLES if stream.name == "SMTP" else [f"y{i + 1}" for i in range(stream.y.shape[1])]
        picture = draw_channels(stream.y, names=names, lines=anomalies)
        words = f"The {stream.name} stream, {len(stream)} rows, with {len(anomalies)} labelled anomalies."
        parts.append(Picture(picture, words, f"{words} Red lines mark them."))
    return Result(TITLE, parts=parts)
