"""Data files from a folder, a server and the cache, and all errors."""

import hashlib
import io
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from limpet.datasets import _fetch, load_skab, load_smtp, load_thyroid, load_well_log
from limpet.datasets._fetch import REMOTE_FILES, RemoteFile
from limpet.exceptions import DatasetError, InvalidInputError, MissingExtraError

# --- a local folder -------------------------------------------------------------------------------------------


def make_well_log_bytes():
    return b"".join(b"%.7e\n" % (110_000 + row) for row in range(4050))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with a small Well-log file that is registered as the real one."""
    content = make_well_log_bytes()
    monkeypatch.setitem(REMOTE_FILES, "well_log/well.txt", RemoteFile("https://example.org/well.txt", sha256(content)))
    (tmp_path / "well_log").mkdir()
    (tmp_path / "well_log" / "well.txt").write_bytes(content)
    monkeypatch.setenv("LIMPET_DATA", str(tmp_path))
    return tmp_path


def test_folder_is_read_without_pooch(folder, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert load_well_log().y[7, 0] == 110_007
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("alter", [lambda b: b[:-100], lambda b: b"9" + b[1:], lambda b: b""])
def test_altered_file_in_folder_raises(folder, alter):
    path = folder / "well_log" / "well.txt"
    path.write_bytes(alter(path.read_bytes()))
    with pytest.raises(
        DatasetError, match=r"well\.txt is truncated, altered or another version: must have sha256 .* got"
    ):
        load_well_log()


def test_missing_file_in_folder_raises(folder):
    with pytest.raises(
        DatasetError, match=r"has no thyroid/thyroid\.mat\. Fetch https://.*/thyroid\.mat and save it as"
    ):
        load_thyroid()


def test_folder_in_place_of_the_file_raises(folder):
    (folder / "smtp" / "smtp_adbench.npz").mkdir(parents=True)
    with pytest.raises(DatasetError, match=r"smtp_adbench\.npz cannot be read: .*or unset LIMPET_DATA"):
        load_smtp()


def test_missing_folder_raises(folder, monkeypatch):
    monkeypatch.setenv("LIMPET_DATA", str(folder / "nowhere"))
    with pytest.raises(DatasetError, match=r"LIMPET_DATA names .*nowhere, which is not a folder.*unset LIMPET_DATA"):
        load_well_log()


# --- downloads, from a local server -----------------------------------------------------------------------------


def make_smtp_bytes():
    buffer = io.BytesIO()
    np.savez(buffer, X=np.arange(120_003.0).reshape(-1, 3), y=np.arange(40_001) % 2)
    return buffer.getvalue()


def make_thyroid_bytes():
    savemat = pytest.importorskip("scipy.io").savemat
    buffer = io.BytesIO()
    savemat(buffer, {"X": np.arange(12_006.0).reshape(-1, 6), "y": np.arange(2001.0)[:, None] % 2})
    return buffer.getvalue()


def make_skab_bytes(number):
    sensors = ";".join(["x"] * 8)
    lines = [f"datetime;{sensors};anomaly;changepoint"]
    for row in range(40):
        values = ";".join(str(number + row % 7 * column) for column in range(8))  # the first column is constant
        lines.append(f"2020-03-09 10:14:{row:02};{values};{float(10 <= row < 30)};{float(row in (10, 12, 28, 30))}")
    return "\r\n".join(lines).encode()


class FileServer:
    """A server of files on 127.0.0.1 that records the requests."""

    def __init__(self):
        self.files, self.truncated, self.requested = {}, set(), []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                server.requested.append(name)
                if name not in server.files:
                    self.send_error(404)
                    return
                content = server.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in server.truncated else content)

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
    server = FileServer()
    server.files = {"well_log/well.txt": make_well_log_bytes(), "smtp/smtp_adbench.npz": make_smtp_bytes()}
    server.files["thyroid/thyroid.mat"] = make_thyroid_bytes()
    server.files |= {f"skab/valve2/{number}.csv": make_skab_bytes(number) for number in range(4)}
    for name, content in server.files.items():
        monkeypatch.setitem(REMOTE_FILES, name, RemoteFile(f"{server.address}/{name}", sha256(content)))
    server.cache = tmp_path / "cache"
    monkeypatch.setattr(_fetch, "get_cache_folder", lambda: server.cache)
    monkeypatch.delenv("LIMPET_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.http.shutdown()
    server.http.server_close()


def list_files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_download_happens_once(server, capfd):
    first = load_well_log()
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"limpet: downloading well_log/well.txt from {server.address[7:]} to {server.cache}\n"
    second = load_well_log()
    assert capfd.readouterr() == ("", "")
    assert server.requested == ["well_log/well.txt"]
    assert list_files(server.cache) == ["well_log/well.txt"]
    assert first.y[7, 0] == second.y[7, 0] == 110_007
    assert first.split == 1550


def test_all_loaders_download(server, capfd):
    smtp, thyroid = load_smtp(), load_thyroid()
    assert (smtp.y.shape, smtp.labels.sum(), smtp.split) == ((40_001, 3), 20_000, 40_000)
    assert (thyroid.y.shape, thyroid.labels.sum(), thyroid.split) == ((2001, 6), 1000, 2000)
    capfd.readouterr()
    streams = load_skab("valve2", standardize=20)
    assert capfd.readouterr().err.count("\n") == 1
    assert [stream.y.shape for stream in streams] == [(40, 8)] * 4
    assert [stream.change_points for stream in streams] == [[10, 28]] * 4
    assert all(np.isfinite(stream.y).all() for stream in streams)
    assert (streams[3].y[:, 0] == 0).all()  # the constant sensor
    assert sorted(server.requested) == list_files(server.cache) == sorted(set(server.files) - {"well_log/well.txt"})
    with pytest.raises(InvalidInputError, match="standardize: must be at most 40"):
        load_skab("valve2", standardize=41)


def test_empty_environment_variable_is_ignored(server, monkeypatch):
    monkeypatch.setenv("LIMPET_DATA", "")
    assert len(load_well_log()) == 4050


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b"9" + b[1:], lambda b: b"<html>Sorry</html>"])
def test_truncated_or_altered_download_is_removed(server, damage):
    content = server.files["well_log/well.txt"]
    server.files["well_log/well.txt"] = damage(content)
    with pytest.raises(DatasetError, match=r"is truncated or altered and was removed.*set LIMPET_DATA"):
        load_well_log()
    assert list_files(server.cache) == []
    server.files["well_log/well.txt"] = content
    assert len(load_well_log()) == 4050


def test_interrupted_transfer_raises(server):
    server.truncated.add("well_log/well.txt")
    with pytest.raises(DatasetError, match=r"could not be downloaded: .*closed the connection|truncated .* removed"):
        load_well_log()
    assert list_files(server.cache) == []


def test_missing_remote_file_raises(server):
    del server.files["well_log/well.txt"]
    with pytest.raises(DatasetError, match=r"could not be downloaded: the server returned 404 Not Found\. To provide"):
        load_well_log()
    assert list_files(server.cache) == []


def test_error_names_all_files_of_a_group(server):
    del server.files["skab/valve2/2.csv"]
    everything = r"All of the 4 files are needed, skab/valve2/0\.csv to skab/valve2/3\.csv"
    with pytest.raises(DatasetError, match=rf"valve2/2\.csv could not be downloaded: .*404.*{everything}"):
        load_skab("valve2")


def test_unreachable_server_raises(server, monkeypatch):
    with socket.socket() as unused:  # bound and never listening: no other process gets the port, and connecting fails
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/well.txt"
        monkeypatch.setitem(REMOTE_FILES, "well_log/well.txt", REMOTE_FILES["well_log/well.txt"]._replace(url=url))
        with pytest.raises(DatasetError, match=rf"is unreachable.*\(ConnectionError\)\. To provide .* fetch {url}"):
            load_well_log()
    assert list_files(server.cache) == []


def test_corrupted_cache_is_downloaded_again(server):
    path = server.cache / "well_log" / "well.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(make_well_log_bytes()[:1000])
    assert len(load_well_log()) == 4050
    assert path.read_bytes() == make_well_log_bytes()
    assert list_files(server.cache) == ["well_log/well.txt"]


def test_only_what_is_missing_is_downloaded(server):
    load_skab("valve2")
    (server.cache / "skab" / "valve2" / "2.csv").unlink()
    server.requested.clear()
    load_skab("valve2")
    assert server.requested == ["skab/valve2/2.csv"]


def test_unwritable_cache_raises(server):
    server.cache.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"well\.txt could not be written to the cache .*cache.*set LIMPET_DATA"):
        load_well_log()


def test_permission_error_of_the_cache_raises(server, monkeypatch):
    import pooch

    def raise_permission_error(*_):
        raise PermissionError("not yours")

    monkeypatch.setattr(pooch, "retrieve", raise_permission_error)
    with pytest.raises(DatasetError, match=r"could not be written to the cache .*: not yours\. To provide"):
        load_well_log()


def test_interrupted_download_leaves_nothing(server, monkeypatch):
    import pooch.core

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.core, "hash_matches", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_well_log()
    assert list_files(server.cache) == []


def test_loading_in_several_threads(server):
    with ThreadPoolExecutor(8) as pool:
        streams = [future.result() for future in [pool.submit(load_well_log) for _ in range(8)]]
    assert all((stream.y == streams[0].y).all() for stream in streams)
    assert server.requested == ["well_log/well.txt"]


def test_log_level_of_pooch_is_restored(server):
    import pooch

    before = pooch.get_logger().level
    load_well_log()
    assert pooch.get_logger().level == before


# --- missing packages ------------------------------------------------------------------------------------------------


def test_missing_pooch_raises(monkeypatch):
    monkeypatch.delenv("LIMPET_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"needs pooch.*pip install 'limpet\[data\]'.*LIMPET_DATA"):
        load_well_log()
