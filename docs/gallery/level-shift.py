"""A level that shifts, among outliers: rejected points, the estimate that follows, and one alarm."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(2)
stream = rng.normal(20.0, 0.5, 1500)
stream[900:] += 1.5
outliers = rng.random(1500) < 0.03
stream[outliers] = rng.uniform(14.0, 28.0, outliers.sum())

trace = lp.Detector().process(stream, record="means")

figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
rows = np.arange(1500)
axes.plot(rows[~trace.rejected], stream[~trace.rejected], ".", color="0.6", markersize=3, label="accepted")
axes.plot(rows[trace.rejected], stream[trace.rejected], "x", color="tab:orange", label="rejected")
axes.plot(trace.means[:, 0, 0], color="tab:blue", linewidth=2, label="estimate")
for alarm in trace.alarms:
    if alarm.kind == "change":
        axes.axvline(alarm.row, color="crimson", label=f"change, row {alarm.row}")
axes.set(xlabel="row", ylabel="value")
figure.legend(ncols=4, loc="outside upper left")
figure.savefig("level-shift.png", dpi=120)
