"""The exponential distribution, for waiting times: a custom model in one small file."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import limpet as lp
from limpet.core import Layout, ModelKernels, full_norm, gradient_step, identity_estimate, kernel, log

SMALLEST = 1e-300  # a mean of zero has no logarithm


@kernel
def evaluate(theta, y, hyper, work, missing):
    """Return −log f(y) = log m + y/m; store H = ŝ − s̄(y) = m − y in `work`."""
    m = max(theta[0], SMALLEST)
    work[0] = theta[0] - y[0]
    return log(m) + y[0] / m


@kernel
def whitened(theta, y, hyper, work, missing):
    """Return ‖H‖² in standard deviations; the sd of an exponential variable is its mean."""
    return (work[0] / max(theta[0], SMALLEST)) ** 2


@kernel
def is_not_negative(y):
    return y[0] >= 0.0


def init(points, theta, hyper, seed):
    """Initialize from the median, which is m·log 2 and which outliers do not move far."""
    theta[0] = np.median(points) / np.log(2.0)


@cache
def make_kernels():
    return ModelKernels(
        layout=Layout({"mean": (1,)}),
        width=1,
        work_size=1,
        evaluate=evaluate,
        norms={"whitened": whitened, "full": full_norm},
        advance=gradient_step,
        init=init,
        is_valid=is_not_negative,
        estimate=identity_estimate,
        estimate_shape=(1, 1),
        handles_missing=False,
    )


@dataclass(frozen=True)
class Exponential(lp.models.Model):
    estimates = ("means",)
    recordable = "means"

    def kernels(self, width):
        return make_kernels()

    def estimate(self, name, theta, width):
        return theta.reshape(1, 1).copy()
