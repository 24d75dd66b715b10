"""Load the SMTP and THYROID data sets, rows of which few are anomalies."""

from __future__ import annotations

import io

import numpy as np

from limpet._optional import optional_import
from limpet.datasets._fetch import read_files
from limpet.datasets.labelled_stream import Stream


def load_smtp() -> Stream:
    """Load SMTP: 95,156 connections to a mail server, 30 of them attacks.

    The attributes are log(x + 0.1) of the connection's duration and of the bytes sent and received. `labels` is 1 in
    the rows of attacks, which are the paper's t − 1; they come in clusters, 13 of them in rows 14691 to 15365. The
    first 40 000 rows are for choosing settings (`split`). An attack is a point and no new regime, so that
    `change_points` is empty.

    Notes
    -----
    KDD Cup 1999, as prepared by ODDS (Outlier Detection DataSets, Stony Brook), which states no licence; the file
    comes from Minqi824/ADBench, a repository under BSD-2-Clause.

    Examples
    --------
    >>> load_smtp()  # doctest: +SKIP
    Stream('SMTP', 95156 rows x 3, 30 anomalies, test from row 40000)
    """
    (content,) = read_files(["smtp/smtp_adbench.npz"])
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        y, labels = arrays["X"], arrays["y"]
    return Stream(y, labels=labels, name="SMTP", split=40_000)


def load_thyroid() -> Stream:
    """Load THYROID: 6 measurements of 3,772 patients, 93 of them anomalies.

    The measurements are scaled to [0, 1]. `labels` is 1 in the rows of anomalies: the paper's t − 1. The first 2000
    rows are for choosing settings (`split`). The rows are patients and not a process in time, so that `change_points`
    is empty.

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
