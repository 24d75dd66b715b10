"""Algorithm 1 and nothing else: the step, the threshold, the norms, the step sizes, the flat state."""

from holdfast.scheme.compiling import kernel
from holdfast.scheme.functions import ModelKernels, accept_all, full_norm, gradient_step, identity_estimate
from holdfast.scheme.state import Layout
from holdfast.scheme.step_sizes import Constant, InverseTime, PolynomialDecay, StepSize

__all__ = [
    "Constant",
    "InverseTime",
    "Layout",
    "ModelKernels",
    "PolynomialDecay",
    "StepSize",
    "accept_all",
    "full_norm",
    "gradient_step",
    "identity_estimate",
    "kernel",
]
