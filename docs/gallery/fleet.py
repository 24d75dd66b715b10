"""Forty sensors in one call, and where each raised a change alarm; one of them, of sensor 6 at row 423, is false."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(5)
sensors, rows = 40, 1200
values = rng.normal(size=(rows, sensors)) + rng.uniform(-50.0, 50.0, sensors)
values[800:, 5:20] += 3.0  # something happened to fifteen of them
values[400:, 30] -= 4.0

fleet = lp.Fleet(lp.Detector(far=1e-5))
fleet.update(np.tile(np.arange(sensors), rows), values.ravel())
changes = [alarm for alarm in fleet.alarms if alarm.kind == "change"]

figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
picture = (values - values[:300].mean(axis=0)) / values[:300].std(axis=0)
axes.imshow(picture.T, aspect="auto", cmap="RdBu_r", vmin=-6, vmax=6, interpolation="nearest")
axes.plot([alarm.row for alarm in changes], [alarm.key for alarm in changes], "k>", label="change alarm")
axes.set(xlabel="row of its stream", ylabel="sensor")
axes.legend(loc="upper left")
figure.savefig("fleet.png", dpi=120)
