"""The numbers of the paper's synthetic streams: means before and after the change, and covariances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# What the published notebooks hand to numpy as a covariance. It is not symmetric (0.7 against -0.3).
NOTEBOOK_MATRIX: FloatArray = np.array([[1.0, 0.7, -0.3], [-0.3, 1.0, 0.5], [-0.3, 0.5, 1.0]])
NOTEBOOK_MATRIX.setflags(write=False)

PRINTED_COVARIANCE: FloatArray = np.array([[1.0, -0.8, 0.2], [-0.8, 1.0, 0.3], [0.2, 0.3, 1.0]])
PRINTED_COVARIANCE.setflags(write=False)


class Regimes(NamedTuple):
    """Two regimes of a mixture: means (K, d) before and after the change, one covariance (d, d) for all."""

    before: FloatArray
    after: FloatArray
    covariance: FloatArray


def effective_numpy_covariance(matrix: FloatArray) -> FloatArray:
    """Return the covariance with which `numpy.random.multivariate_normal` really draws, given any matrix A.

    It takes A = U S Vᵀ and multiplies standard normals by S^½ Vᵀ, hence the covariance is V S Vᵀ = (AᵀA)^½.
    For a covariance this is A itself; for the notebooks' asymmetric matrix it is neither A nor its
    symmetric part. (`numpy.random.Generator` keeps U in place of V: there the same matrix gives (AAᵀ)^½.)

    >>> covariance_drawn_by_numpy(NOTEBOOK_MATRIX).round(3)
    array([[ 0.99 ,  0.181, -0.409],
           [ 0.181,  1.25 ,  0.382],
           [-0.409,  0.382,  1.013]])
    """
    _, singular_values, right_vectors = np.linalg.svd(matrix)
    return np.asarray((right_vectors.T * singular_values) @ right_vectors)


def get_regimes(dim: int, variant: str, gradual: bool) -> Regimes:
    """Return the means and covariance of one of the paper's synthetic streams.

    In one dimension the printed 0.1 is read as a standard deviation. The two printed 3-D streams
    differ before the change already: μ₁ and μ₂ are (3, 2, 1), (-2, 3, 2) in the abrupt stream and (3, 4, 1),
    (-2, 3, -2) in the gradual one, and only the latter simply doubles.

    >>> regimes(dim=3, variant="printed", gradual=False).after
    array([[ 6.,  4.,  2.],
           [-4.,  6., -4.]])
    """
    if dim == 1:
        means = np.array([[0.5], [-0.5]])
        return Regimes(means, 2 * means, np.array([[0.1**2]]))
    if variant == "notebook":
        means = np.array([[0.5, 0.5, 0.5], [-0.5, -0.5, -0.5]])
        return Regimes(means, 2 * means, effective_numpy_covariance(NOTEBOOK_MATRIX))
    if gradual:
        means = np.array([[3.0, 4.0, 1.0], [-2.0, 3.0, -2.0]])
        return Regimes(means, 2 * means, PRINTED_COVARIANCE)
    means = np.array([[3.0, 2.0, 1.0], [-2.0, 3.0, 2.0]])
    return Regimes(means, np.array([[6.0, 4.0, 2.0], [-4.0, 6.0, -4.0]]), PRINTED_COVARIANCE)
