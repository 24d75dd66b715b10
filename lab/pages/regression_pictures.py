"""Draw the picture of docs/guide/robust-regression.md, for `regression_page.py`; takes some minutes."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from limpet.exceptions import LimpetWarning
from limpet_lab.bench.regression import ROWS, STREAM_KINDS
from limpet_lab.bench.regression.runs import LINEAR, LOGISTIC, Run, compute_errors, make_follower, make_pairs
from limpet_lab.plots.running_errors import StreamColumn, draw_running_errors

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "robust-regression.png"
SEEDS = range(5)
DRAWN_METHODS = {
    LINEAR: (
        "SRA",
        "SRA, defaults",
        "SRA, no threshold",
        "river, squared loss",
        "river, Huber",
        "river, Cauchy",
        "scikit-learn, Huber",
    ),
    LOGISTIC: ("SRA", "SRA, defaults", "SRA, no threshold", "river, log loss", "scikit-learn, log loss"),
}
TITLES = {
    LINEAR: ("Numbers, 5 % of them corrupted", "error², in variances of the noise"),
    LOGISTIC: ("Labels, 5 % flipped where they are sure", "log-loss above the least possible"),
}

TunedSettings = Mapping[str, Mapping[str, tuple[float, float]]]


def make_column(family: str, tuned: Mapping[str, tuple[float, float]]) -> StreamColumn:
    """Return the mean error of each method over the seeds, row by row, and the first stream."""
    streams = [make_pairs(Run(family, STREAM_KINDS[family][0], "", None, seed, ROWS)) for seed in SEEDS]
    lines = {}
    for name in DRAWN_METHODS[family]:
        method = name.removesuffix(", defaults")
        setting = tuned[method] if method == name else None
        follow = make_follower(Run(family, STREAM_KINDS[family][0], method, setting, 0, ROWS))
        lines[name] = np.mean([compute_errors(family, pairs, follow(pairs.X, pairs.y)) for pairs in streams], axis=0)
    first = streams[0]
    return StreamColumn(*TITLES[family], first.y - first.truth, first.corrupted, lines)


def draw(tuned: TunedSettings) -> None:
    """Draw it into docs/pictures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        columns = [make_column(family, tuned[family]) for family in STREAM_KINDS]
    PICTURE.write_bytes(draw_running_errors(columns, change_points=[ROWS // 2]))
