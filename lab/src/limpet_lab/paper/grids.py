"""The settings that the paper chooses from, and those it reports as chosen.

The text, the tables and Appendix B do not agree on the grids, and some settings are chosen from grids that do not hold
them; each grid here is the union of all that is printed.
"""

from __future__ import annotations

import math

from limpet.tuning import Setting, grid

ADWIN_DELTAS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
KSWIN_ALPHAS = [0.001, 0.005, 0.01]


def make_kswin_grid(windows: list[int]) -> list[Setting]:
    """Return KSWIN's grid; it has pairs with a window shorter than two samples, which cannot run."""
    return grid(alpha=KSWIN_ALPHAS, window=windows, stat=[10, 15])


# Synthetic streams. β is {.1, .5, 1} in the text and {.1, .2, .3, .5} in Appendix B; M {1, 5, 10} and {5, 10, 15}.
SRA_BETAS, SRA_M_VALUES = [0.1, 0.2, 0.3, 0.5, 1.0], [1.0, 5.0, 10.0, 15.0]
SRA_UNIVARIATE = grid(gamma=[1.0, 3.0, 5.0, 10.0, 15.0], beta=SRA_BETAS, M=SRA_M_VALUES)
SRA_MULTIVARIATE = grid(gamma=[1.0, 3.0, 5.0, 7.0, 10.0, 15.0], beta=SRA_BETAS, M=SRA_M_VALUES)
SRA_APPENDIX_B = grid(gamma=[1.0, 3.0, 5.0, 10.0, 15.0], beta=[0.1, 0.2, 0.3, 0.5], M=[5.0, 10.0, 15.0])
SDEM_SYNTHETIC = grid(r=[0.0001, 0.001, 0.005, 0.01])
SEM_SYNTHETIC = grid(rho=[0.001, 0.003, 0.005, 0.01, 0.1])  # .01 and .1 are chosen, not listed
ADWIN = grid(delta=ADWIN_DELTAS)
KSWIN_SYNTHETIC = make_kswin_grid([10, 20, 30])  # 30 is chosen, not listed
PH_SYNTHETIC = grid(delta=[0.001, 0.01, 0.1, 1.0, *(10.0 * n for n in range(1, 10))])  # 20 to 90 are chosen

# What the paper reports as chosen for SRA, by table and column.
SRA_PRINTED: dict[str, dict[str, Setting]] = {
    "mse_univariate": {kind: {"gamma": 3.0, "beta": 0.1, "M": 5.0} for kind in ("abrupt", "gradual")},
    "auc_univariate": {
        "abrupt": {"gamma": 3.0, "beta": 0.1, "M": 10.0},
        "gradual": {"gamma": 1.0, "beta": 0.5, "M": 5.0},
    },
    "mse_multivariate": {kind: {"gamma": 7.0, "beta": 0.5, "M": 5.0} for kind in ("abrupt", "gradual")},
    "auc_multivariate": {
        "abrupt": {"gamma": 7.0, "beta": 0.5, "M": 5.0},
        "gradual": {"gamma": 3.0, "beta": 0.5, "M": 5.0},
    },
    # The paper has three settings with the same ρ for each annotation; this is the one with γ = 2·10⁶.
    "auc_well_log": {
        f"annotation_{n}": {"n_components": 1, "gamma": 2e6, "beta": 2e4, "M": 8e6 if n == 4 else 4e6}
        for n in range(1, 6)
    },
    "auc_skab": {
        column: {"n_components": 1, "gamma": 80.0, "beta": 5.0, "M": 50000.0} for column in ("Tb_20", "Tb_50")
    },
    "auc_anomaly": {
        "SMTP": {"gamma": 10.0, "beta": 0.5, "M": 5.0, "n_components": 2},
        "THYROID": {"gamma": 10.0, "beta": 0.5, "M": 5.0, "n_components": 3},
    },
}


def make_well_log_grid(*gammas: float) -> list[Setting]:
    """Return the text's grid on Well-log for some γ: β and M are multiples of it. M = 4γ is chosen, not listed."""
    return [
        {"n_components": 1, "gamma": gamma, "beta": share * gamma, "M": times * gamma}
        for gamma in gammas
        for share in (0.01, 0.03, 0.05)
        for times in (1.0, 2.0, 3.0, 4.0)
    ]


# Well-log. γ is 2·10⁶ and more in the text, with which nothing is ever rejected, and 2·10⁴ in the figure.
SRA_WELL_LOG_FIGURE: Setting = {"n_components": 1, "gamma": 2e4, "beta": 200.0, "M": 4e4}
SRA_WELL_LOG = [*make_well_log_grid(2e6, 3e6, 4e6), SRA_WELL_LOG_FIGURE]
SRA_WELL_LOG_SMALL = make_well_log_grid(2e4, 3e4, 4e4)  # printed nowhere: the text's grid at the figure's scale
SDEM_WELL_LOG = grid(n_components=[1], r=[0.001, 0.003, 0.005, 0.01, 0.03, 0.05, 0.1])
SEM_WELL_LOG = grid(n_components=[1], rho=[0.001, 0.003, 0.005, 0.01, 0.03, 0.05, 0.1])
KSWIN_WELL_LOG = make_kswin_grid([10, 20, 30])  # 30 is chosen, not listed
PH_WELL_LOG = grid(delta=[0.001, 0.01, 0.1, 1.0, 10.0])

# SKAB. M = 50 000 is chosen, not listed.
SRA_SKAB = grid(
    n_components=[1], gamma=[80.0, 90.0, 100.0], beta=[1.0, 5.0, 10.0], M=[10000.0, 20000.0, 30000.0, 50000.0]
)
SDEM_SKAB = grid(n_components=[1], r=[0.01, 0.03, 0.05, 0.1, 0.3, 0.5])
SEM_SKAB = grid(n_components=[1], rho=[0.01, 0.03, 0.05, 0.1, 0.3, 0.5])
KSWIN_SKAB = make_kswin_grid([20, 30])
PH_REAL = grid(delta=[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0])

# SMTP and THYROID. KSWIN's windows are printed as a copy of its alphas; 20 is chosen.
COMPONENT_COUNTS = [1, 2, 3]
PRINTED_COMPONENT_COUNTS = {"SMTP": 2, "THYROID": 3}  # what the paper chose for SRA
SRA_ANOMALY = grid(gamma=[5.0, 10.0, 15.0], beta=[0.1, 0.5, 1.0], M=[1.0, 5.0, 10.0], n_components=COMPONENT_COUNTS)
SDEM_ANOMALY = {
    "SMTP": grid(r=[0.1, 0.3, 0.5], n_components=COMPONENT_COUNTS),
    "THYROID": grid(r=[0.01, 0.03, 0.05, 0.1], n_components=COMPONENT_COUNTS),
}
SEM_ANOMALY = {
    "SMTP": grid(rho=[0.01, 0.03, 0.05, 0.1], n_components=COMPONENT_COUNTS),
    "THYROID": grid(rho=[0.0001, 0.001, 0.005], n_components=COMPONENT_COUNTS),
}
KSWIN_ANOMALY = make_kswin_grid([10, 20, 30])

# River's Page–Hinkley forgets all it has whenever its statistic passes a threshold, 50 by default, in the units of the
# data; without one it never does.
RIVER_PH_THRESHOLDS = [50.0, math.inf]
