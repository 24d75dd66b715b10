"""Algorithm 1 and nothing else: the step, the threshold, the norms, the step sizes, the flat state."""

from holdfast.scheme.compiling import kernel
from holdfast.scheme.functions import Functions, any_point, descend, full_norm, whole_state
from holdfast.scheme.state import Layout
from holdfast.scheme.step_sizes import Constant, OneOverT, Power, StepSize

__all__ = [
    "Constant",
    "Functions",
    "Layout",
    "OneOverT",
    "Power",
    "StepSize",
    "any_point",
    "descend",
    "full_norm",
    "kernel",
    "whole_state",
]
