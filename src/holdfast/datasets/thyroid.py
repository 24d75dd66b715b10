"""The THYROID data set: measurements of patients, few of them anomalous."""

from __future__ import annotations

import io

from holdfast.datasets.fetching import read_files
from holdfast.datasets.stream import Stream
from holdfast.extras import optional_import


def load_thyroid() -> Stream:
    """Load THYROID: 3772 patients, 6 measurements scaled to [0, 1], of which 93 rows are anomalies.

    `labels` is 1 in the rows of anomalies: the paper's t − 1. The first 2000 rows are for choosing settings
    (`split`). These are patients in a row and no process in time: there are no `change_points`.

    Notes
    -----
    UCI Thyroid Disease (ann-thyroid, training part), as prepared by ODDS (Outlier Detection DataSets, Stony Brook),
    which states no licence; the file comes from an early commit of yzhao062/pyod. It is a MATLAB file, which scipy
    reads.

    Examples
    --------
    >>> load_thyroid()  # doctest: +SKIP
    Stream('THYROID', 3772 rows x 6, 93 anomalies, test from row 2000)
    """
    with optional_import("reading THYROID, a MATLAB file,", "data"):
        from scipy.io import loadmat
    (content,) = read_files(["thyroid/thyroid.mat"])
    arrays = loadmat(io.BytesIO(content), variable_names=["X", "y"])
    return Stream(arrays["X"], labels=arrays["y"].ravel(), name="THYROID", split=2000)
