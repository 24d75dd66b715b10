"""p-values of a stable stream are uniform up to 0.5; outliers are far below."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(6)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, values in {"Gaussian": rng.normal(size=20_000), "Laplace": rng.laplace(size=20_000)}.items():
    values[15_000] = 60.0
    p = lp.Detector().process(values).p_value[2000:]
    left.plot(np.sort(p), np.arange(1, p.size + 1) / p.size, label=name)
    right.semilogy(np.arange(2000, 20_000), p, ".", markersize=2, label=name)
left.plot([0, 1], [0, 1], "k--", linewidth=1, label="uniform")
left.set(xlabel="p-value", ylabel="share of the points below it")
left.legend()
right.axhline(1e-4, color="crimson", label="far = 0.0001")
right.set(xlabel="row", ylabel="p-value", xticks=[5000, 10_000, 15_000, 20_000])
right.legend(loc="lower left")
figure.savefig("p-values.png", dpi=120)
