"""Evaluate settings on streams on all cores, and select the best setting."""

from limpet.tuning.objectives import BenefitAUC, LabelAUC, MeanError, Objective, TraceObjective
from limpet.tuning.sweep import CannotRunError, Setting, SweepResult, grid, sweep
from limpet.tuning.tune import TuningResult, select_best, tune

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
