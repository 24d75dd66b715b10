"""The SMTP data set: mail connections of KDD Cup 1999, with a handful of attacks."""

from __future__ import annotations

import io

import numpy as np

from holdfast.datasets.fetching import read_files
from holdfast.datasets.stream import Stream


def load_smtp() -> Stream:
    """Load SMTP: 95 156 connections to a mail server, 3 attributes, of which 30 rows are attacks.

    The attributes are log(x + 0.1) of the connection's duration and of the bytes sent and received. `labels` is 1 in
    the rows of attacks, which are the paper's t − 1; they come in clusters, 13 of them in rows 14691 to 15365. The
    first 40 000 rows are for choosing settings (`split`). An attack is a point and no new regime: there are no
    `change_points`.

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
