"""Algorithm 1: step, threshold, norms, step sizes, and the flat state."""

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log, maximum, minimum
from limpet.core.algorithm import Outcome
from limpet.core.model_kernels import ModelKernels, accept_all, full_norm, gradient_step, identity_estimate
from limpet.core.state import Layout
from limpet.core.step_sizes import Constant, InverseTime, PolynomialDecay, StepSize

__all__ = [
    "Constant",
    "InverseTime",
    "Layout",
    "ModelKernels",
    "Outcome",
    "PolynomialDecay",
    "StepSize",
    "accept_all",
    "exp",
    "full_norm",
    "gradient_step",
    "identity_estimate",
    "kernel",
    "log",
    "maximum",
    "minimum",
]
