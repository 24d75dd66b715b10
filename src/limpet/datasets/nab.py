"""Load series of the Numenta Anomaly Benchmark, with windows of anomalies."""

from __future__ import annotations

import io

import numpy as np

from limpet.datasets._fetch import read_files
from limpet.datasets.labelled_stream import Stream

# First and last row of each window, of which labels/combined_windows.json has the timestamps.
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
    without. They are seasonal, autocorrelated, rounded or heavy-tailed, and their levels shift.

    `labels` is 1 in the windows within which an alarm counts as a hit: a window is wide, lies around the anomaly, and
    most of its rows look like any others. `split` is the first row that the benchmark scores, after 15 % of the rows,
    at most 750. `change_points` is empty. Rows are as in the files; their timestamps, of which a few repeat or go
    back, are left out. `limpet.metrics.nab_score` is the benchmark's score.

    Notes
    -----
    Published under the MIT licence, at github.com/numenta/NAB; the windows are those of the same commit as the series.

    References
    ----------
    .. [1] A. Lavin and S. Ahmad, Evaluating real-time anomaly detection algorithms: the Numenta Anomaly Benchmark,
       ICMLA 2015, arXiv:1510.03336.

    Examples
    --------
    >>> load_nab()[21]  # doctest: +SKIP
    Stream('NAB realKnownCause/nyc_taxi', 10320 rows x 1, 1035 anomalies, test from row 750)
    """
    contents = read_files([f"nab_part/{name}.csv" for name in ANOMALY_WINDOW_ROWS])
    return [_make_stream(name, content) for name, content in zip(ANOMALY_WINDOW_ROWS, contents, strict=True)]


def _make_stream(name: str, content: bytes) -> Stream:
    y = np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, usecols=1)
    labels = np.zeros(len(y), dtype=np.int64)
    for first, last in ANOMALY_WINDOW_ROWS[name]:
        labels[first : last + 1] = 1
    return Stream(y, labels=labels, name=f"NAB {name}", split=min(int(PROBATION_SHARE * len(y)), MAX_PROBATION_ROWS))
