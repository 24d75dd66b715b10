"""Settings × streams × restarts, on all cores, and the best setting by the paper's two criteria."""

from holdfast.tuning.grid import Setting, grid
from holdfast.tuning.objectives import BenefitAUC, LabelAUC, MeanError, Objective, OfTrace
from holdfast.tuning.selection import choose
from holdfast.tuning.sweep import CannotRunError, Sweep, sweep
from holdfast.tuning.tune import Tuned, tune

__all__ = [
    "BenefitAUC",
    "CannotRunError",
    "LabelAUC",
    "MeanError",
    "Objective",
    "OfTrace",
    "Setting",
    "Sweep",
    "Tuned",
    "choose",
    "grid",
    "sweep",
    "tune",
]
