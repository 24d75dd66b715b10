"""Load real data sets: Well-log, SKAB, SMTP, THYROID and NAB."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from limpet._optional import optional_import
from limpet._validation import FloatArray, Interval, Optional, Options, check_param
from limpet.datasets._fetch import REMOTE_FILES, read_files
from limpet.datasets.labeled_stream import Stream
from limpet.exceptions import InvalidInputError

# Well-log. The paper's annotations 1 to 5 are TCPD's annotators 6, 7, 8, 12 and 13.
TCPD_INDICES: dict[int | str, list[int]] = {
    1: [179, 255, 281, 311, 343, 402, 413, 422, 432, 462, 464],
    2: [179, 255, 281, 312, 343, 402, 412, 422, 432],
    3: [179, 255, 282, 312, 343, 402, 413, 422, 432],
    4: [177, 467],
    5: [4, 179, 255, 281, 311, 344, 402, 412, 422, 432, 462, 464, 521, 526, 620, 643, 661],
}
ANNOTATION_STRIDE_ROWS = 6  # an index i counts from 0 in TCPD's series, which is every sixth point


def load_well_log(annotations: str = "paper") -> Stream:
    """Load Well-log: 4,050 measurements in a borehole [1]_.

    They are nuclear magnetic responses with jumps and many outliers, not standardised. `change_points` is a dict:
    annotator 1 to 5, as the paper numbers them, to a list of rows. The first 1550 rows are for choosing settings
    (`split`).

    Parameters
    ----------
    annotations : "paper" or "tcpd"
        The annotators saw every sixth point [2]_. Point i of those, counted from 0, is row 6i: "tcpd". The paper took i
        as counted from 1; its times t, as rows t − 1, lie six rows too early: "paper".

    Notes
    -----
    The file comes from the Turing Change Point Dataset (alan-turing-institute/TCPD), under the MIT licence.

    References
    ----------
    .. [1] J. J. K. Ó Ruanaidh and W. J. Fitzgerald, Numerical Bayesian Methods Applied to Signal Processing, 1996.
    .. [2] G. J. J. van den Burg and C. K. I. Williams, An Evaluation of Change Point Detection Algorithms, 2020.

    Examples
    --------
    >>> load_well_log()  # doctest: +SKIP
    Stream('Well-log', 4050 rows x 1, changes by 5 annotators, test from row 1550)
    >>> load_well_log().change_points[4]  # doctest: +SKIP
    [1056, 2796]
    """
    check_param("annotations", annotations, Options("paper", "tcpd"))
    (content,) = read_files(["well_log/well.txt"])
    offset = 1 if annotations == "paper" else 0  # the paper reads the indices as if they counted from 1
    changes = {
        annotator: [ANNOTATION_STRIDE_ROWS * (i - offset) for i in indices]
        for annotator, indices in TCPD_INDICES.items()
    }
    return Stream(np.loadtxt(io.BytesIO(content)), change_points=changes, name="Well-log", split=1550)


# SKAB

SKAB_GROUPS = ("valve1", "valve2", "other")
N_SENSORS = 8


def load_skab(group: str = "valve1", standardize: int | None = None, annotations: str = "paper") -> list[Stream]:
    """Load a group of the Skoltech Anomaly Benchmark [1]_.

    Each stream has 8 sensors of a water circuit with a valve, and about 1,100 rows. The streams come in the order of
    their file numbers, which are in their names: "SKAB valve1/3". The paper uses the 16 of valve1: it trains on files
    0, 2, …, 14, `streams[::2]`, and tests on `streams[1::2]`.

    Columns are Accelerometer1RMS, Accelerometer2RMS, Current, Pressure, Temperature, Thermocouple, Voltage,
    Volume Flow RateRMS. `labels` is 1 while the circuit is in the anomalous regime or on its way there or back; a few
    single rows with Current and Voltage exchanged are outliers and not labelled. This is the version of October 2020,
    which the paper used. Since February 2022 the published files have those outliers repaired and `other` renumbered.

    Parameters
    ----------
    group : "valve1", "valve2" or "other"
        16, 4 or 14 streams.
    standardize : int, optional
        Subtract from each variable the mean of its first so many rows and divide by their standard deviation (over n,
        not n − 1), unless it is constant there. The paper states 100, its notebooks use 20. Default: leave the values.
    annotations : "paper" or "all"
        Which marked rows are `change_points`. A file marks the starts and the ends of the transitions into and out
        of the anomalous regime; "paper" takes the two starts, "all" every mark. Where marks are missing, "paper" takes
        the first mark in either half of the anomalous span. The stream other/9 has one change: it ends before the
        second transition.

    Notes
    -----
    The data are published under GPL-3.0, at github.com/waico/SKAB.

    References
    ----------
    .. [1] I. D. Katser and V. O. Kozitsin, Skoltech Anomaly Benchmark (SKAB), 2020, doi:10.34740/KAGGLE/DSV/1693952.

    Examples
    --------
    >>> load_skab("valve1", standardize=20)[3]  # doctest: +SKIP
    Stream('SKAB valve1/3', 1149 rows x 8, 404 anomalies, 2 changes)
    """
    check_param("group", group, Options(*SKAB_GROUPS))
    check_param("annotations", annotations, Options("paper", "all"))
    check_param("standardize", standardize, Optional(Interval(int, 2, None)))
    names = [name for name in REMOTE_FILES if name.startswith(f"skab/{group}/")]
    streams = []
    for name, content in zip(names, read_files(names), strict=True):
        # The first column is the time of day; nothing is missing, as the sha256 of the file is known.
        table = np.loadtxt(io.BytesIO(content), delimiter=";", skiprows=1, usecols=range(1, N_SENSORS + 3))
        y, labels, marks = table[:, :N_SENSORS], table[:, N_SENSORS], np.flatnonzero(table[:, N_SENSORS + 1])
        if standardize is not None:
            y = standardize_by_first_rows(y, standardize)
        changes = find_transition_starts(marks, labels) if annotations == "paper" else marks.tolist()
        title = f"SKAB {name.removeprefix('skab/').removesuffix('.csv')}"
        streams.append(Stream(y, labels=labels.astype(np.int64), change_points=changes, name=title))
    return streams


def standardize_by_first_rows(y: FloatArray, n: int) -> FloatArray:
    """Return the columns standardized by their first n rows, or only centred."""
    if n > len(y):
        raise InvalidInputError(f"standardize: must be at most {len(y)}, the number of rows, got {n}.")
    start = y[:n]
    constant = (start == start[0]).all(axis=0)  # and not a deviation of 0: the mean of equal numbers may be rounded
    mean = np.where(constant, start[0], start.mean(axis=0))
    return np.asarray((y - mean) / np.where(constant, 1.0, start.std(axis=0)))


def find_transition_starts(marks: npt.NDArray[np.intp], labels: FloatArray) -> list[int]:
    """Return the first marks of the transitions to the anomalous regime and back."""
    anomalous = np.flatnonzero(labels)
    middle = (anomalous[0] + anomalous[-1]) / 2
    return [int(direction[0]) for direction in (marks[marks <= middle], marks[marks > middle]) if len(direction)]


# Rows of which few are anomalies: SMTP and THYROID


def load_smtp() -> Stream:
    """Load SMTP: 95,156 connections to a mail server, 30 of them attacks.

    The attributes are log(x + 0.1) of the connection's duration and of the bytes sent and received. `labels` is 1 in
    the rows of attacks, which are the paper's t − 1; they come in clusters. The first 40,000 rows are for choosing
    settings (`split`). An attack is a point and no new regime, so that `change_points` is empty.

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
        return Stream(arrays["X"], labels=arrays["y"], name="SMTP", split=40_000)


def load_thyroid() -> Stream:
    """Load THYROID: 6 measurements of 3,772 patients, 93 of them anomalies.

    The measurements are scaled to [0, 1]. `labels` is 1 in the rows of anomalies: the paper's t − 1. The first 2000
    rows are for choosing settings (`split`). Patients are not a process in time, so that `change_points` is empty.

    Notes
    -----
    UCI Thyroid Disease (ann-thyroid, training part), as prepared by ODDS (Outlier Detection DataSets, Stony Brook),
    which states no licence; a MATLAB file from an early commit of yzhao062/pyod, which requires scipy.

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


# NAB: first and last row of each window, of which labels/combined_windows.json has the timestamps.
ANOMALY_WINDOW_ROWS: dict[str, list[tuple[int, int]]] = {
    "artificialNoAnomaly/art_daily_no_noise": [],
    "artificialNoAnomaly/art_daily_perfect_square_wave": [],
    "artificialNoAnomaly/art_daily_small_noise": [],
    "artificialNoAnomaly/art_flatline": [],
    "artificialNoAnomaly/art_noisy": [],
    "artificialWithAnomaly/art_daily_flatmiddle": [(2679, 3081)],
    "artificialWithAnomaly/art_daily_jumpsdown": [(2787, 3189)],
    "artificialWithAnomaly/art_daily_jumpsup": [(2787, 3189)],
    "artificialWithAnomaly/art_daily_nojump": [(2787, 3189)],
    "artificialWithAnomaly/art_increase_spike_density": [(1805, 2207)],
    "artificialWithAnomaly/art_load_balancer_spikes": [(2734, 3136)],
    "realAdExchange/exchange-2_cpc_results": [(244, 406)],
    "realAdExchange/exchange-2_cpm_results": [(565, 645), (934, 1014)],
    "realAdExchange/exchange-3_cpc_results": [(271, 321), (413, 463), (952, 1002)],
    "realAdExchange/exchange-3_cpm_results": [(1045, 1197)],
    "realAdExchange/exchange-4_cpc_results": [(340, 394), (749, 803), (1249, 1303)],
    "realAdExchange/exchange-4_cpm_results": [(347, 387), (729, 769), (1256, 1296), (1381, 1421)],
    "realKnownCause/ambient_temperature_system_failure": [(3540, 3902), (5999, 6361)],
    "realKnownCause/cpu_utilization_asg_misconfiguration": [(16551, 18049)],
    "realKnownCause/ec2_request_latency_system_failure": [(2014, 2148), (3328, 3462), (3956, 4031)],
    "realKnownCause/machine_temperature_system_failure": [(2126, 2692), (3703, 4269), (16057, 16623), (19232, 19798)],
    "realKnownCause/nyc_taxi": [(5839, 6045), (7080, 7286), (8423, 8629), (8731, 8937), (9977, 10183)],
    "realKnownCause/rogue_agent_key_hold": [(669, 763), (1240, 1334)],
    "realKnownCause/rogue_agent_key_updown": [(2243, 2507), (2877, 3141)],
}
PROBATION_SHARE, MAX_PROBATION_ROWS = 0.15, 750  # rows of a series that the benchmark does not score


def load_nab() -> list[Stream]:
    """Load 24 series of the Numenta Anomaly Benchmark [1]_.

    They have one variable, 1,538 to 22,695 rows each, and 39 windows in total. "NAB realKnownCause/nyc_taxi" is a name,
    with the group: 13 real series (`realKnownCause`, `realAdExchange`), 6 artificial ones with an anomaly and 5
    without.

    `labels` is 1 in the windows within which an alarm counts as a hit: a window is wide, lies around the anomaly, and
    most of its rows look like any others. `split` is the first row that the benchmark scores, after 15 % of the rows,
    at most 750. `change_points` is empty, and timestamps are left out. `limpet.metrics.nab_score` is the benchmark's
    score.

    Notes
    -----
    Published under the MIT licence, at github.com/numenta/NAB; the windows are those of the same commit as the series.

    References
    ----------
    .. [1] A. Lavin and S. Ahmad, Evaluating real-time anomaly detection algorithms, ICMLA 2015, arXiv:1510.03336.

    Examples
    --------
    >>> load_nab()[21]  # doctest: +SKIP
    Stream('NAB realKnownCause/nyc_taxi', 10320 rows x 1, 1035 anomalies, test from row 750)
    """
    contents = read_files([f"nab_part/{name}.csv" for name in ANOMALY_WINDOW_ROWS])
    streams = []
    for (name, windows), content in zip(ANOMALY_WINDOW_ROWS.items(), contents, strict=True):
        y = np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, usecols=1)
        labels = np.zeros(len(y), dtype=np.int64)
        for first, last in windows:
            labels[first : last + 1] = 1
        split = min(int(PROBATION_SHARE * len(y)), MAX_PROBATION_ROWS)
        streams.append(Stream(y, labels=labels, name=f"NAB {name}", split=split))
    return streams
