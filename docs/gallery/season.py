"""Without `season` two false alarms; with `season=288` the anomalous value and the level shift are detected."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(4)
rows = np.arange(3240)
stream = 10.0 + 4.0 * np.sin(2 * np.pi * rows / 288) + rng.normal(0.0, 0.4, rows.size)
stream[2820] = 13.5  # as high as at noon, but at night
stream[3100:] += 1.5

figure, both = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
for axes, season in zip(both, (0, 288), strict=True):
    trace = lp.Detector(season=season).process(stream)
    axes.plot(stream, color="0.6", linewidth=0.8)
    for alarm in trace.alarms:
        colour = "crimson" if alarm.kind == "change" else "tab:purple"
        axes.axvline(alarm.row, color=colour, linestyle="-" if alarm.kind == "change" else ":")
    counts = f"change alarms (red): {trace.change.sum()}, anomalies (dotted): {trace.anomaly.sum()}"
    axes.set_title(f"season={season}; {counts}", loc="left")
both[1].set_xlabel("row")
figure.savefig("season.png", dpi=120)
