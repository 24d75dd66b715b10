"""Load the Well-log data set with the change points of five annotators."""

from __future__ import annotations

import io

import numpy as np

from limpet._validation import Options, check_param
from limpet.datasets._fetch import read_files
from limpet.datasets.labelled_stream import Stream

# The paper's annotations 1 to 5 are TCPD's annotators 6, 7, 8, 12 and 13. An index i counts from 0 in TCPD's
# series, which is every sixth point of the full one.
TCPD_INDICES: dict[int, list[int]] = {
    1: [179, 255, 281, 311, 343, 402, 413, 422, 432, 462, 464],
    2: [179, 255, 281, 312, 343, 402, 412, 422, 432],
    3: [179, 255, 282, 312, 343, 402, 413, 422, 432],
    4: [177, 467],
    5: [4, 179, 255, 281, 311, 344, 402, 412, 422, 432, 462, 464, 521, 526, 620, 643, 661],
}
ANNOTATION_STRIDE_ROWS = 6


def get_change_rows(annotations: str) -> dict[int | str, list[int]]:
    """Return the change points of each annotator as rows of the full series.

    >>> get_change_rows("paper")[4], get_change_rows("tcpd")[4]
    ([1056, 2796], [1062, 2802])
    """
    check_param("annotations", annotations, Options("paper", "tcpd"))
    offset = 1 if annotations == "paper" else 0  # the paper reads the indices as if they counted from 1
    return {
        annotator: [ANNOTATION_STRIDE_ROWS * (index - offset) for index in indices]
        for annotator, indices in TCPD_INDICES.items()
    }


def load_well_log(annotations: str = "paper") -> Stream:
    """Load Well-log: 4,050 measurements in a borehole [1]_.

    They are nuclear magnetic responses with jumps and many outliers. `change_points` is a dict: annotator 1 to 5, as
    the paper numbers them, to a list of rows. The first 1550 rows are for choosing settings (`split`). Values lie
    between 64,234 and 140,409 and are not standardised.

    The annotations were made on every sixth point [2]_. Point i of that series, counted from 0, is row 6i
    of this one. The paper took i as counted from 1, so its times t = 6(i − 1) + 1 lie six rows too early. Keep them to
    compare with the paper; else take "tcpd".

    Parameters
    ----------
    annotations : "paper" or "tcpd"
        The paper's times t, as rows t − 1; or the rows the annotators meant, six later.

    Notes
    -----
    The file comes from the Turing Change Point Dataset (alan-turing-institute/TCPD), which gives this series the MIT
    licence.

    References
    ----------
    .. [1] J. J. K. Ó Ruanaidh and W. J. Fitzgerald, Numerical Bayesian Methods Applied to Signal Processing, 1996.
    .. [2] G. J. J. van den Burg and C. K. I. Williams, An Evaluation of Change Point Detection Algorithms, 2020.

    Examples
    --------
    >>> stream = load_well_log()  # doctest: +SKIP
    >>> stream  # doctest: +SKIP
    Stream('Well-log', 4050 rows x 1, changes by 5 annotators, test from row 1550)
    >>> stream.change_points[4]  # doctest: +SKIP
    [1056, 2796]
    """
    changes = get_change_rows(annotations)
    (content,) = read_files(["well_log/well.txt"])
    y = np.loadtxt(io.BytesIO(content), ndmin=2)
    return Stream(y, change_points=changes, name="Well-log", split=1550)
