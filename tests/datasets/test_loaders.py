"""The loaders of real data: the facts known of each data set, and their settings."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from limpet.datasets import load_skab, load_smtp, load_thyroid, load_well_log
from limpet.datasets._fetch import REMOTE_FILES
from limpet.datasets.loaders import find_transition_starts, standardize_by_first_rows
from limpet.exceptions import InvalidInputError, MissingExtraError

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch):
    if not (DATA / "well_log" / "well.txt").exists():
        pytest.skip(f"the real data sets are not in {DATA}")
    monkeypatch.setenv("LIMPET_DATA", str(DATA))


# --- the facts -------------------------------------------------------------------------------------------------------

PAPER_CHANGE_ROWS = {  # the paper's t, typed from its text
    1: [1069, 1525, 1681, 1861, 2053, 2407, 2473, 2527, 2587, 2767, 2779],
    2: [1069, 1525, 1681, 1867, 2053, 2407, 2467, 2527, 2587],
    3: [1069, 1525, 1687, 1867, 2053, 2407, 2473, 2527, 2587],
    4: [1057, 2797],
    5: [19, 1069, 1525, 1681, 1861, 2059, 2407, 2467, 2527, 2587, 2767, 2779, 3121, 3151, 3715, 3853, 3961],
}


@pytest.mark.usefixtures("real_data")
def test_well_log():
    stream = load_well_log()
    assert repr(stream) == "Stream('Well-log', 4050 rows x 1, changes by 5 annotators, test from row 1550)"
    assert np.isfinite(stream.y).all()
    assert (stream.y.min(), stream.y.max()) == (64234.38, 140408.5)
    assert stream.y[:3, 0].tolist() == [133530.6, 137119.1, 133820.5]
    assert stream.change_points == {who: [t - 1 for t in times] for who, times in PAPER_CHANGE_ROWS.items()}
    assert sum(map(len, stream.change_points.values())) == 48
    assert stream.labels is None


@pytest.mark.usefixtures("real_data")
def test_well_log_annotations_equal_those_published():
    published = json.loads((DATA / "well_log" / "change_points.json").read_text())
    thinned = json.loads((DATA / "well_log" / "well_log_tcpd.json").read_text())["series"][0]["raw"]
    paper, tcpd = load_well_log(), load_well_log(annotations="tcpd")
    assert tcpd.y[::6, 0].tolist() == thinned
    for annotator, number in published["paper_annotation"].items():
        assert tcpd.change_points[number] == [6 * index for index in published["tcpd_index"][annotator]]
        assert paper.change_points[number] == [t - 1 for t in published["paper_t"][annotator]]
        assert [row - 6 for row in tcpd.change_points[number]] == paper.change_points[number]


SKAB = {  # file: rows, changepoint rows, number of anomalous rows
    "valve1/0": (1148, [574, 631, 918, 975], 401),
    "valve1/1": (1145, [572, 629, 916, 974], 402),
    "valve1/2": (1075, [566, 846, 903], 337),
    "valve1/3": (1149, [574, 632, 919, 978], 404),
    "valve1/4": (1095, [573, 631, 865, 922], 349),
    "valve1/5": (1154, [577, 635, 923, 980], 403),
    "valve1/6": (1154, [576, 634, 922, 981], 405),
    "valve1/7": (1094, [578, 635, 924, 983], 405),
    "valve1/8": (1144, [572, 629, 915, 972], 400),
    "valve1/9": (1148, [574, 631, 917, 976], 402),
    "valve1/10": (1146, [573, 630, 917, 974], 401),
    "valve1/11": (1141, [572, 630, 914, 971], 399),
    "valve1/12": (1140, [570, 627, 912, 969], 399),
    "valve1/13": (1140, [570, 627, 912, 969], 399),
    "valve1/14": (1139, [569, 626, 911, 968], 399),
    "valve1/15": (1150, [574, 632, 920, 978], 404),
    "valve2/0": (1125, [562, 618, 900, 956], 394),
    "valve2/1": (1063, [560, 616, 838, 893], 333),
    "valve2/2": (1129, [565, 621, 904, 960], 395),
    "valve2/3": (995, [564, 621, 903, 959], 395),
    "other/9": (751, [557, 614], 194),
    "other/11": (665, [109, 149, 435, 493], 384),
    "other/12": (1137, [568, 625, 909, 966], 398),
    "other/13": (968, [568, 624, 909, 966], 398),
    "other/14": (1153, [571, 981], 410),
    "other/15": (1147, [574, 633, 915, 975], 401),
    "other/16": (1091, [573, 691, 859, 919], 346),
    "other/17": (1147, [572, 574, 972, 975], 403),
    "other/18": (1145, [572, 629, 916, 974], 402),
    "other/19": (1326, [569, 620, 945, 1156], 587),
    "other/20": (1191, [570, 573, 925, 1021], 451),
    "other/21": (1141, [569, 664, 953, 970], 401),
    "other/22": (1079, [569, 627, 853, 908], 339),
    "other/23": (1044, [572, 580, 873], 301),
}
STARTS_WITH_MISSING_MARKS = {"valve1/2": [566, 846], "other/9": [557], "other/14": [571, 981], "other/23": [572, 873]}


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(("group", "n_streams"), [("valve1", 16), ("valve2", 4), ("other", 14)])
def test_skab(group, n_streams):
    streams, marked = load_skab(group), load_skab(group, annotations="all")
    files = [name for name in SKAB if name.startswith(f"{group}/")]
    assert len(streams) == n_streams
    assert [stream.name for stream in streams] == [f"SKAB {name}" for name in files]
    for name, stream, with_all in zip(files, streams, marked, strict=True):
        n_rows, marks, n_anomalies = SKAB[name]
        assert stream.y.shape == (n_rows, 8)
        assert np.isfinite(stream.y).all()
        assert stream.labels.sum() == n_anomalies
        assert with_all.change_points == marks
        assert stream.change_points == STARTS_WITH_MISSING_MARKS.get(name, marks[::2])
        assert stream.labels[stream.change_points[0]] == 1
        assert stream.labels[stream.change_points[0] - 1] == 0
        assert stream.split is None


@pytest.mark.usefixtures("real_data")
def test_skab_has_the_version_with_outliers():
    swapped = {0: [734, 766], 1: [386, 852], 3: [494], 4: [569], 5: [610], 6: [799], 7: [668, 889], 8: [885]}
    swapped[9] = [447, 534, 708]
    alone = {0: [524], 3: [337]}
    for number, stream in enumerate(load_skab()):
        current, voltage = stream.y[:, 2], stream.y[:, 6]
        strange = (current > 100) | (voltage < 100)
        expected = sorted(swapped.get(number, []) + alone.get(number, []))
        assert np.flatnonzero(strange).tolist() == expected
        for row in swapped.get(number, []):
            assert current[row] > 190
            assert voltage[row] < 5
    first, fourth = load_skab()[0].y, load_skab()[3].y
    assert round(first[524, 6], 2) == 1.09
    assert first[524, 2] < 100
    assert round(fourth[337, 2], 1) == 205.4
    assert fourth[337, 6] > 100


@pytest.mark.usefixtures("real_data")
def test_skab_standardised_as_in_the_notebook():
    raw, scaled = load_skab()[3].y, load_skab(standardize=20)[3].y
    current = scaled[:, 2]
    assert round(current.mean(), 6) == 1.130708
    assert round(current.std(ddof=1), 6) == 49.773051
    assert round(current.max(), 6) == 1195.684894
    assert np.flatnonzero(current > 10).tolist() == [337, 494]
    np.testing.assert_allclose(scaled[:20].mean(axis=0), 0, atol=1e-11)
    np.testing.assert_allclose(scaled[:20].std(axis=0), 1)
    by_hundred = load_skab(standardize=100)[3].y
    np.testing.assert_allclose(by_hundred, (raw - raw[:100].mean(axis=0)) / raw[:100].std(axis=0), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("real_data")
def test_smtp():
    stream = load_smtp()
    assert repr(stream) == "Stream('SMTP', 95156 rows x 3, 30 anomalies, test from row 40000)"
    assert np.isfinite(stream.y).all()
    assert stream.y.min() == pytest.approx(np.log(0.1))
    around_15000 = [14692, 14742, 14789, 14833, 14888, 14967, 15016, 15043, 15099, 15165, 15221, 15283, 15366]
    later = [24788, 49528, 49529, *range(55502, 55511), 61672, 61673, 67813, 67814, 88859]
    assert (np.flatnonzero(stream.labels) + 1).tolist() == around_15000 + later
    assert stream.change_points == []


@pytest.mark.usefixtures("real_data")
def test_thyroid():
    stream = load_thyroid()
    assert repr(stream) == "Stream('THYROID', 3772 rows x 6, 93 anomalies, test from row 2000)"
    assert stream.y.min(axis=0).tolist() == [0] * 6
    assert stream.y.max(axis=0).tolist() == [1] * 6
    rows = np.array([518, 520, 640, 687, 861, 965]) - 1
    second = stream.y[:, 1]
    assert second[rows].round(3).tolist() == [0.185, 0.040, 0.023, 0.189, 0.206, 0.238]
    assert second[np.concatenate([rows - 1, rows + 1])].max() < 0.0185
    assert round(np.median(second), 3) == 0.003
    assert round(np.quantile(second[stream.labels == 0], 0.99), 3) == 0.047
    assert stream.labels[rows].all()
    assert stream.labels[517:965].sum() == 11
    assert stream.change_points == []


def test_files_of_the_shared_folder_have_the_registered_checksums(real_data):
    sums = dict(line.split(maxsplit=1)[::-1] for line in (DATA / "SHA256SUMS").read_text().splitlines())
    for name, source in REMOTE_FILES.items():
        assert sums[name] == source.sha256


def test_urls_are_pinned_to_commits():
    assert len(REMOTE_FILES) == 3 + 34 + 24
    for source in REMOTE_FILES.values():
        host, _, commit = source.url.split("/")[2], *source.url.split("/")[4:6]
        assert host == "raw.githubusercontent.com"
        assert len(commit) == 40
        assert len(source.sha256) == 64
        int(commit, 16)
        int(source.sha256, 16)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: load_well_log(annotations="mine"), "annotations: must be 'paper' or 'tcpd', got 'mine'"),
        (lambda: load_skab("valve3"), "group: must be 'valve1', 'valve2' or 'other', got 'valve3'"),
        (lambda: load_skab(annotations="tcpd"), "annotations: must be 'paper' or 'all', got 'tcpd'"),
        (lambda: load_skab(standardize=1), "standardize: must be an integer of at least 2 or None, got 1"),
        (lambda: load_skab(standardize=20.0), "standardize: must be"),
        (lambda: load_skab(standardize=True), "standardize: must be"),
    ],
)
def test_parameters_are_validated_before_the_download(load, message, monkeypatch):
    monkeypatch.setenv("LIMPET_DATA", "nowhere")
    with pytest.raises(InvalidInputError, match=message):
        load()


def test_variable_that_is_constant_at_first_is_only_centered():
    y = np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 2.0], [0.4, 4.0]])
    scaled = standardize_by_first_rows(y, 3)
    assert scaled[:3, 0].tolist() == [0, 0, 0]  # although the mean of three times 0.1 is not 0.1
    assert scaled[3, 0] == pytest.approx(0.3)
    assert scaled[3, 1] == pytest.approx(2 / np.std([1, 3, 2]))
    with pytest.raises(InvalidInputError, match="standardize: must be at most 4"):
        standardize_by_first_rows(y, 5)


@pytest.mark.parametrize(
    ("marks", "anomalous", "starts"),
    [
        ([20, 25, 70, 80], slice(20, 80), [20, 70]),
        ([20, 70, 80], slice(20, 80), [20, 70]),
        ([20, 25, 80], slice(20, 80), [20, 80]),
        ([20, 80], slice(20, 80), [20, 80]),
        ([20, 25], slice(20, None), [20]),
    ],
)
def test_transition_starts_with_missing_marks(marks, anomalous, starts):
    labels = np.zeros(100)
    labels[anomalous] = 1
    assert find_transition_starts(np.array(marks), labels) == starts


def test_missing_scipy_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(MissingExtraError, match=r"needs scipy.*pip install 'limpet\[data\]'"):
        load_thyroid()
