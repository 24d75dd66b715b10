"""Table: summary of the anomaly data sets."""

from __future__ import annotations

from limpet.datasets import load_smtp, load_thyroid
from limpet.report.html import Table
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext

TITLE = "The anomaly data sets in numbers"
PRINTED_COUNTS = {"SMTP": [95156, 3, 30], "THYROID": [3772, 6, 93]}  # the paper's summary table


def run(context: ExperimentContext) -> Result:
    """Length, variables, anomalies; counted in the files and as printed."""
    counted: dict[str, list[int]] = {}
    for load in (load_smtp, load_thyroid):
        stream = load()
        assert stream.labels is not None
        counted[stream.name] = [*stream.y.shape, int(stream.labels.sum())]
    names = ["sequence length", "variables", "anomalies"]
    rows = [[name, *(f"{counted[c][i]:,} ({PRINTED_COUNTS[c][i]:,})" for c in counted)] for i, name in enumerate(names)]
    rows.append(["share of anomalies", *(f"{counted[c][2] / counted[c][0]:.2%}" for c in counted)])
    table = {"metrics": names, **counted}
    return Result(TITLE, {"dataset_summary": table}, parts=[Table(["", *counted], rows, "In brackets as printed.")])
