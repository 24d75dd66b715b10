"""After a jump beyond its threshold plain SRA rejects every point; Detector re-initializes."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(3)
stream = np.concatenate([rng.normal(20.0, 0.5, 600), rng.normal(25.0, 0.5, 600)])

figure, both = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
for axes, name, learner in zip(both, ("SRA(rho=0.01)", "Detector()"), (lp.SRA(rho=0.01), lp.Detector()), strict=True):
    with warnings.catch_warnings(action="ignore"):  # it warns that all points are rejected
        trace = learner.process(stream, record="means")
    rows = np.flatnonzero(trace.rejected)
    axes.plot(stream, ".", color="0.7", markersize=3)
    axes.plot(rows, stream[rows], "x", color="tab:orange", markersize=4, label=f"{len(rows)} points rejected")
    axes.plot(trace.means[:, 0, 0], color="tab:blue", linewidth=2, label=f"estimate of {name}")
    axes.legend(loc="upper left")
both[1].set_xlabel("row")
figure.savefig("lock-out.png", dpi=120)
