"""Load the SKAB data set: eight sensors of a water circuit with a valve."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, Interval, Optional, Options, check_param
from limpet.datasets._fetch import REMOTE_FILES, read_files
from limpet.datasets.labelled_stream import Stream
from limpet.exceptions import InvalidInputError

SKAB_GROUPS = ("valve1", "valve2", "other")
N_SENSORS = 8


def load_skab(group: str = "valve1", standardize: int | None = None, annotations: str = "paper") -> list[Stream]:
    """Load a group of the Skoltech Anomaly Benchmark [1]_.

    Each stream has 8 sensors and about 1,100 rows. The streams come in the order of their file numbers, which are in
    their names: "SKAB valve1/3". The paper uses the 16 of valve1. It trains on files 0, 2, …, 14, `streams[::2]`, and
    tests on `streams[1::2]`; `split` is None.

    Columns are Accelerometer1RMS, Accelerometer2RMS, Current, Pressure, Temperature, Thermocouple, Voltage,
    Volume Flow RateRMS. `labels` is 1 while the circuit is in the anomalous regime or on its way there or back;
    a few single rows with Current and Voltage exchanged are outliers and not labelled.

    This is the version of October 2020, which the paper used. Since February 2022 the published files have those
    outliers repaired and `other` renumbered.

    Parameters
    ----------
    group : "valve1", "valve2" or "other"
        16, 4 or 14 streams.
    standardize : int, optional
        Subtract from each variable the mean of its first so many rows and divide by their standard deviation
        (over n, not n − 1). A variable that is constant on these rows has no scale there and is not divided. The
        paper states 100, its notebooks use 20. By default values are left as they are.
    annotations : "paper" or "all"
        Which marked rows are `change_points`. A file marks where the way into the anomalous regime starts and ends,
        then the same of the way back; "paper" takes the two starts. Where marks are missing it takes the first
        mark of either way, and a mark belongs to the way in whose half of the anomalous span it lies: the second of
        three marks is a start in valve1/2, and none in other/23. The stream other/9 ends before the way back
        and has one change. "all" takes every marked row.

    Notes
    -----
    The data are published under GPL-3.0, at github.com/waico/SKAB.

    References
    ----------
    .. [1] I. D. Katser and V. O. Kozitsin, Skoltech Anomaly Benchmark (SKAB), 2020, doi:10.34740/KAGGLE/DSV/1693952.

    Examples
    --------
    >>> streams = load_skab("valve1", standardize=20)  # doctest: +SKIP
    >>> streams[3]  # doctest: +SKIP
    Stream('SKAB valve1/3', 1149 rows x 8, 404 anomalies, 2 changes)
    >>> streams[3].change_points  # doctest: +SKIP
    [574, 919]
    """
    check_param("group", group, Options(*SKAB_GROUPS))
    check_param("annotations", annotations, Options("paper", "all"))
    check_param("standardize", standardize, Optional(Interval(int, 2, None)))
    names = [name for name in REMOTE_FILES if name.startswith(f"skab/{group}/")]
    return [
        _make_stream(f"SKAB {name.removeprefix('skab/').removesuffix('.csv')}", content, standardize, annotations)
        for name, content in zip(names, read_files(names), strict=True)
    ]


def standardize_by_first_rows(y: FloatArray, n: int) -> FloatArray:
    """Return the columns standardized by their first n rows, or only centred.

    >>> standardize_by_first_rows(np.array([[1.0, 5.0], [3.0, 5.0], [6.0, 8.0]]), 2)
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 4.,  3.]])
    """
    if n > len(y):
        raise InvalidInputError(f"standardize: must be at most {len(y)}, the number of rows, got {n}.")
    start = y[:n]
    constant = (start == start[0]).all(axis=0)  # and not a deviation of 0: the mean of equal numbers may be rounded
    mean = np.where(constant, start[0], start.mean(axis=0))
    return np.asarray((y - mean) / np.where(constant, 1.0, start.std(axis=0)))


def find_transition_starts(marks: npt.NDArray[np.intp], labels: FloatArray) -> list[int]:
    """Return the first marks of the transitions to the anomalous regime and back.

    >>> labels = np.zeros(100)
    >>> labels[20:80] = 1
    >>> [find_transition_starts(np.array(marks), labels) for marks in ([20, 25, 70, 80], [20, 70, 80])]
    [[20, 70], [20, 70]]
    """
    anomalous = np.flatnonzero(labels)
    middle = (anomalous[0] + anomalous[-1]) / 2
    marks_by_direction = marks[marks <= middle], marks[marks > middle]
    return [int(direction_marks[0]) for direction_marks in marks_by_direction if len(direction_marks)]


def _make_stream(name: str, content: bytes, standardize: int | None, annotations: str) -> Stream:
    # The first column is the time of day; the lines are of one version whose sha256 is known, so nothing is missing.
    table = np.loadtxt(io.BytesIO(content), delimiter=";", skiprows=1, usecols=range(1, N_SENSORS + 3), ndmin=2)
    y, labels, is_marked = table[:, :N_SENSORS], table[:, N_SENSORS], table[:, N_SENSORS + 1]
    if standardize is not None:
        y = standardize_by_first_rows(y, standardize)
    marks = np.flatnonzero(is_marked)
    changes = find_transition_starts(marks, labels) if annotations == "paper" else marks.tolist()
    return Stream(y, labels=labels.astype(np.int64), change_points=changes, name=name)
