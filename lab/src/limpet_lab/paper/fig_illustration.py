"""Figure: robustness against adaptivity, the paper's opening illustration."""

from __future__ import annotations

import numpy as np

from limpet.report.html import Picture
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.paper.methods import make_sem, make_sra
from limpet_lab.plots.illustration import draw_illustration

TITLE = "Robustness against adaptivity"
N_ROWS, CHANGE_ROW = 1200, 600


def run(context: ExperimentContext) -> Result:
    """One Gaussian that jumps once, with outliers: followed by two step sizes without a threshold, and by SRA."""
    rng = np.random.default_rng(7)
    truth = np.where(np.arange(N_ROWS) < CHANGE_ROW, 0.0, 2.0)
    y = truth + rng.normal(0.0, 0.4, N_ROWS)
    outliers = rng.random(N_ROWS) < 0.02
    y[outliers] = rng.uniform(-12.0, 12.0, int(outliers.sum()))
    learners = {
        "adaptive, not robust: a large step": make_sem(n_components=1, rho=0.15),
        "robust, not adaptive: a small step": make_sem(n_components=1, rho=0.004),
        "both: SRA, a threshold and a step": make_sra(n_components=1, gamma=3.0, rho=0.05),
    }
    estimates = {name: learner.process(y, record="means").means[:, 0, 0] for name, learner in learners.items()}
    picture = draw_illustration(y, estimates, change_point=CHANGE_ROW, outliers=outliers, truth=truth)
    words = "A stream with outliers and one change, followed by three estimates."
    caption = "A large step follows the change and every outlier; a small one neither; SRA leaves outliers out."
    return Result(TITLE, parts=[Picture(picture, words, caption)])
