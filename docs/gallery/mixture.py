"""The paper's gradual stream: the means of two components drift apart, and `SRA(n_components=2)` follows them."""

import matplotlib.pyplot as plt

import limpet as lp

stream = lp.datasets.make_gradual(n=8000, seed=1)
learner = lp.SRA(n_components=2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
trace = learner.process(stream.y, record="means")

figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.plot(stream.y, ".", color="0.75", markersize=1.5)
axes.plot(trace.means[:, :, 0], color="tab:blue", linewidth=2, label=["estimated means", None])
axes.plot(stream.means[:, :, 0], "--", color="black", linewidth=1, label=["true means", None])
axes.set(xlabel="row", ylabel="value", ylim=(-2.5, 2.5))
axes.legend(loc="upper left")
figure.savefig("mixture.png", dpi=120)
