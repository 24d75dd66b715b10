"""Two correlated variables with gaps and spikes; from row 1700 on the valve sticks and their relation changes."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(8)
n = 2400
load = 5.0 + rng.normal(0.0, 0.3, n)
flow = 60.0 + 8.0 * (load - 5.0) + rng.normal(0.0, 0.6, n)
flow[1700:] -= 4.0  # the valve
flow[rng.random(n) < 0.01] = 0.0  # spikes
load[rng.random(n) < 0.05] = np.nan  # gaps
trace = lp.Detector().process(np.column_stack([load, flow]))

figure, panels = plt.subplots(3, 1, figsize=(9, 6), sharex=True, layout="constrained")
for axes, name, values in zip(panels, ("load", "flow", "surprise"), (load, flow, trace.score), strict=True):
    axes.plot(values, ".", color="0.5", markersize=2)
    axes.set_ylabel(name)
panels[1].plot(np.flatnonzero(trace.rejected), flow[trace.rejected], "x", color="tab:orange", label="rejected")
for alarm in trace.alarms:
    if alarm.kind == "change":
        for axes in panels:
            axes.axvline(alarm.row, color="crimson")
        names = ", ".join(("load", "flow")[variable] for variable in alarm.variables)
        panels[1].text(alarm.row, 20, f" {names} {alarm.direction}", color="crimson")
panels[1].legend(loc="center left")
panels[2].set_xlabel("row")
figure.savefig("sensor.png", dpi=120)
