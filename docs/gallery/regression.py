"""Regression with 5 % corrupted targets, which disturb least squares; SRA rejects them and follows the new slope."""

import matplotlib.pyplot as plt
import numpy as np

import limpet as lp

rng = np.random.default_rng(7)
n = 3000
slope = np.where(np.arange(n) < 1500, 2.0, 1.0)
X = rng.normal(size=(n, 1))
y = slope * X[:, 0] + rng.normal(0.0, 0.3, n)
y[rng.random(n) < 0.05] = -40.0

figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for name, gamma in {"SRA, γ = 5": 5.0, "no threshold": np.inf}.items():
    learner = lp.SRA(model=lp.models.LinearRegression(), gamma=gamma, rho=0.01)
    slopes = [learner.coef[0] for x, target in zip(X, y, strict=True) if learner.update(x, target)]
    axes.plot(slopes, label=name)
axes.plot(slope, "k--", linewidth=1, label="truth")
axes.set(xlabel="row", ylabel="slope", ylim=(-6, 6))
axes.legend()
figure.savefig("regression.png", dpi=120)
