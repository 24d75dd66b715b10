"""The loaders of real data: the facts known of each data set, and every way in which a file can fail to come."""

import hashlib
import io
import json
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from holdfast.datasets import fetching, load_skab, load_smtp, load_thyroid, load_well_log
from holdfast.datasets.skab import standardise_by_start, transition_starts
from holdfast.datasets.sources import SOURCES, Source
from holdfast.errors import BadInputError, DataError, MissingExtraError

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch):
    if not (DATA / "well_log" / "well.txt").exists():
        pytest.skip(f"the real data sets are not in {DATA}")
    monkeypatch.setenv("HOLDFAST_DATA", str(DATA))


# --- the facts -------------------------------------------------------------------------------------------------------

PAPER_WELL_LOG = {  # the paper's t, typed from its text
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
    assert stream.change_points == {who: [t - 1 for t in times] for who, times in PAPER_WELL_LOG.items()}
    assert sum(map(len, stream.change_points.values())) == 48
    assert stream.labels is None


@pytest.mark.usefixtures("real_data")
def test_well_log_annotations_are_those_published():
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
WITH_MARKS_MISSING = {"valve1/2": [566, 846], "other/9": [557], "other/14": [571, 981], "other/23": [572, 873]}


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
        assert stream.change_points == WITH_MARKS_MISSING.get(name, marks[::2])
        assert stream.labels[stream.change_points[0]] == 1
        assert stream.labels[stream.change_points[0] - 1] == 0
        assert stream.split is None


@pytest.mark.usefixtures("real_data")
def test_skab_is_the_version_that_has_the_outliers():
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
    raw, scaled = load_skab()[3].y, load_skab(standardise=20)[3].y
    current = scaled[:, 2]
    assert round(current.mean(), 6) == 1.130708
    assert round(current.std(ddof=1), 6) == 49.773051
    assert round(current.max(), 6) == 1195.684894
    assert np.flatnonzero(current > 10).tolist() == [337, 494]
    np.testing.assert_allclose(scaled[:20].mean(axis=0), 0, atol=1e-11)
    np.testing.assert_allclose(scaled[:20].std(axis=0), 1)
    by_hundred = load_skab(standardise=100)[3].y
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


def test_every_file_of_the_shared_folder_has_the_listed_sum(real_data):
    sums = dict(line.split(maxsplit=1)[::-1] for line in (DATA / "SHA256SUMS").read_text().splitlines())
    for name, source in SOURCES.items():
        assert sums[name] == source.sha256


def test_addresses_are_pinned():
    assert len(SOURCES) == 3 + 34
    for source in SOURCES.values():
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
        (lambda: load_well_log(annotations="mine"), "annotations: expected 'paper' or 'tcpd', got 'mine'"),
        (lambda: load_skab("valve3"), "group: expected 'valve1', 'valve2' or 'other', got 'valve3'"),
        (lambda: load_skab(annotations="tcpd"), "annotations: expected 'paper' or 'all', got 'tcpd'"),
        (lambda: load_skab(standardise=1), "standardise must be a whole number of at least 2, got 1"),
        (lambda: load_skab(standardise=20.0), "standardise must be a whole number"),
        (lambda: load_skab(standardise=True), "standardise must be a whole number"),
    ],
)
def test_settings_are_checked_before_anything_is_fetched(load, message, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", "nowhere")
    with pytest.raises(BadInputError, match=message):
        load()


def test_a_variable_constant_at_the_start_is_only_centred():
    y = np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 2.0], [0.4, 4.0]])
    scaled = standardise_by_start(y, 3)
    assert scaled[:3, 0].tolist() == [0, 0, 0]  # although the mean of three times 0.1 is not 0.1
    assert scaled[3, 0] == pytest.approx(0.3)
    assert scaled[3, 1] == pytest.approx(2 / np.std([1, 3, 2]))
    with pytest.raises(BadInputError, match="standardise: expected at most 4"):
        standardise_by_start(y, 5)


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
def test_starts_of_transitions_where_marks_are_missing(marks, anomalous, starts):
    labels = np.zeros(100)
    labels[anomalous] = 1
    assert transition_starts(np.array(marks), labels) == starts


# --- a folder of one's own -------------------------------------------------------------------------------------------


def well_log_bytes():
    return b"".join(b"%.7e\n" % (110_000 + row) for row in range(4050))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with a small Well-log in it, which the registry takes for the real one."""
    content = well_log_bytes()
    monkeypatch.setitem(SOURCES, "well_log/well.txt", Source("https://example.org/well.txt", sha256(content)))
    (tmp_path / "well_log").mkdir()
    (tmp_path / "well_log" / "well.txt").write_bytes(content)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    return tmp_path


def test_folder_is_read_without_pooch(folder, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert load_well_log().y[7, 0] == 110_007
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("alter", [lambda b: b[:-100], lambda b: b"9" + b[1:], lambda b: b""])
def test_altered_file_in_folder(folder, alter):
    path = folder / "well_log" / "well.txt"
    path.write_bytes(alter(path.read_bytes()))
    with pytest.raises(DataError, match=r"well\.txt is truncated, altered or another version: expected sha256 .* got"):
        load_well_log()


def test_folder_without_the_file(folder):
    with pytest.raises(DataError, match=r"has no thyroid/thyroid\.mat\. Fetch https://.*/thyroid\.mat and save it as"):
        load_thyroid()


def test_folder_in_place_of_the_file(folder):
    (folder / "smtp" / "smtp_adbench.npz").mkdir(parents=True)
    with pytest.raises(DataError, match=r"smtp_adbench\.npz cannot be read: .*or unset HOLDFAST_DATA"):
        load_smtp()


def test_no_such_folder(folder, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(folder / "nowhere"))
    with pytest.raises(DataError, match=r"HOLDFAST_DATA names .*nowhere, which is no folder.*unset HOLDFAST_DATA"):
        load_well_log()


# --- downloads, from a server of our own -----------------------------------------------------------------------------


def smtp_bytes():
    buffer = io.BytesIO()
    np.savez(buffer, X=np.arange(120_003.0).reshape(-1, 3), y=np.arange(40_001) % 2)
    return buffer.getvalue()


def thyroid_bytes():
    savemat = pytest.importorskip("scipy.io").savemat
    buffer = io.BytesIO()
    savemat(buffer, {"X": np.arange(12_006.0).reshape(-1, 6), "y": np.arange(2001.0)[:, None] % 2})
    return buffer.getvalue()


def skab_bytes(number):
    sensors = ";".join(["x"] * 8)
    lines = [f"datetime;{sensors};anomaly;changepoint"]
    for row in range(40):
        values = ";".join(str(number + row % 7 * column) for column in range(8))  # the first column is constant
        lines.append(f"2020-03-09 10:14:{row:02};{values};{float(10 <= row < 30)};{float(row in (10, 12, 28, 30))}")
    return "\r\n".join(lines).encode()


class Server:
    """Serves what it is given on 127.0.0.1, and keeps a list of what it was asked for."""

    def __init__(self):
        self.files, self.cut, self.asked = {}, set(), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                outer.asked.append(name)
                if name not in outer.files:
                    self.send_error(404)
                    return
                content = outer.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in outer.cut else content)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch, tmp_path):
    pytest.importorskip("pooch")
    server = Server()
    server.files = {"well_log/well.txt": well_log_bytes(), "smtp/smtp_adbench.npz": smtp_bytes()}
    server.files["thyroid/thyroid.mat"] = thyroid_bytes()
    server.files |= {f"skab/valve2/{number}.csv": skab_bytes(number) for number in range(4)}
    for name, content in server.files.items():
        monkeypatch.setitem(SOURCES, name, Source(f"{server.address}/{name}", sha256(content)))
    server.cache = tmp_path / "cache"
    monkeypatch.setattr(fetching, "cache_folder", lambda: server.cache)
    monkeypatch.delenv("HOLDFAST_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.http.shutdown()
    server.http.server_close()


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_download_happens_once(server, capfd):
    first = load_well_log()
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"holdfast: downloading well_log/well.txt from {server.address[7:]} to {server.cache}\n"
    second = load_well_log()
    assert capfd.readouterr() == ("", "")
    assert server.asked == ["well_log/well.txt"]
    assert files_in(server.cache) == ["well_log/well.txt"]
    assert first.y[7, 0] == second.y[7, 0] == 110_007
    assert first.split == 1550


def test_all_loaders_download(server, capfd):
    smtp, thyroid = load_smtp(), load_thyroid()
    assert (smtp.y.shape, smtp.labels.sum(), smtp.split) == ((40_001, 3), 20_000, 40_000)
    assert (thyroid.y.shape, thyroid.labels.sum(), thyroid.split) == ((2001, 6), 1000, 2000)
    capfd.readouterr()
    streams = load_skab("valve2", standardise=20)
    assert capfd.readouterr().err.count("\n") == 1
    assert [stream.y.shape for stream in streams] == [(40, 8)] * 4
    assert [stream.change_points for stream in streams] == [[10, 28]] * 4
    assert all(np.isfinite(stream.y).all() for stream in streams)
    assert (streams[3].y[:, 0] == 0).all()  # the constant sensor
    assert sorted(server.asked) == files_in(server.cache) == sorted(set(server.files) - {"well_log/well.txt"})
    with pytest.raises(BadInputError, match="standardise: expected at most 40"):
        load_skab("valve2", standardise=41)


def test_an_empty_variable_is_none(server, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", "")
    assert len(load_well_log()) == 4050


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b"9" + b[1:], lambda b: b"<html>Sorry</html>"])
def test_truncated_or_altered_download_is_thrown_away(server, damage):
    good = server.files["well_log/well.txt"]
    server.files["well_log/well.txt"] = damage(good)
    with pytest.raises(DataError, match=r"is truncated or altered and was thrown away.*set HOLDFAST_DATA"):
        load_well_log()
    assert files_in(server.cache) == []
    server.files["well_log/well.txt"] = good
    assert len(load_well_log()) == 4050


def test_transfer_that_breaks_off(server):
    server.cut.add("well_log/well.txt")
    with pytest.raises(DataError, match=r"could not be downloaded: .*broke off|truncated .* thrown away"):
        load_well_log()
    assert files_in(server.cache) == []


def test_not_found(server):
    del server.files["well_log/well.txt"]
    with pytest.raises(DataError, match=r"could not be downloaded: the server answered 404 Not Found\. To provide"):
        load_well_log()
    assert files_in(server.cache) == []


def test_of_many_files_all_are_named(server):
    del server.files["skab/valve2/2.csv"]
    everything = r"All of the 4 files are needed, skab/valve2/0\.csv to skab/valve2/3\.csv"
    with pytest.raises(DataError, match=rf"valve2/2\.csv could not be downloaded: .*404.*{everything}"):
        load_skab("valve2")


def test_unreachable(server, monkeypatch):
    with socket.socket() as unheard:  # bound and never listening: nobody else gets the port, and connecting fails
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/well.txt"
        monkeypatch.setitem(SOURCES, "well_log/well.txt", SOURCES["well_log/well.txt"]._replace(url=url))
        with pytest.raises(DataError, match=rf"could not be reached.*\(ConnectionError\)\. To provide .* fetch {url}"):
            load_well_log()
    assert files_in(server.cache) == []


def test_corrupt_cache_is_mended(server):
    path = server.cache / "well_log" / "well.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(well_log_bytes()[:1000])
    assert len(load_well_log()) == 4050
    assert path.read_bytes() == well_log_bytes()
    assert files_in(server.cache) == ["well_log/well.txt"]


def test_only_what_is_missing_is_downloaded(server):
    load_skab("valve2")
    (server.cache / "skab" / "valve2" / "2.csv").unlink()
    server.asked.clear()
    load_skab("valve2")
    assert server.asked == ["skab/valve2/2.csv"]


def test_cache_that_cannot_be_written(server):
    server.cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"well\.txt could not be written to the cache .*cache.*set HOLDFAST_DATA"):
        load_well_log()


def test_cache_without_permission(server, monkeypatch):
    import pooch

    def refuse(*_):
        raise PermissionError("not yours")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(DataError, match=r"could not be written to the cache .*: not yours\. To provide"):
        load_well_log()


def test_interrupted_download_leaves_nothing(server, monkeypatch):
    import pooch.core

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.core, "hash_matches", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_well_log()
    assert files_in(server.cache) == []


def test_loading_in_several_threads(server):
    with ThreadPoolExecutor(8) as pool:
        streams = [future.result() for future in [pool.submit(load_well_log) for _ in range(8)]]
    assert all((stream.y == streams[0].y).all() for stream in streams)
    assert server.asked == ["well_log/well.txt"]


def test_pooch_speaks_again_afterwards(server):
    import pooch

    before = pooch.get_logger().level
    load_well_log()
    assert pooch.get_logger().level == before


# --- missing packages ------------------------------------------------------------------------------------------------


def test_without_pooch(monkeypatch):
    monkeypatch.delenv("HOLDFAST_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"needs pooch.*pip install 'holdfast\[data\]'.*HOLDFAST_DATA"):
        load_well_log()


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(MissingExtraError, match=r"needs scipy.*pip install 'holdfast\[data\]'"):
        load_thyroid()
