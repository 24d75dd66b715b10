"""Settings × streams × restarts, on all cores, and the best setting by the paper's two criteria."""

from holdfast.tuning.grid import Setting, grid
from holdfast.tuning.objectives import BenefitAUC, LabelAUC, MeanError, Objective, TraceObjective
from holdfast.tuning.selection import select_best
from holdfast.tuning.sweep import CannotRunError, SweepResult, sweep
from holdfast.tuning.tune import TuningResult, tune

__all__ = [
    "BenefitAUC",
    "CannotRunError",
    "LabelAUC",
    "MeanError",
    "Objective",
    "Setting",
    "SweepResult",
    "TraceObjective",
    "TuningResult",
    "grid",
    "select_best",
    "sweep",
    "tune",
]
