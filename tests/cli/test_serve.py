"""`limpet serve` as a user runs it: in a separate process, with signals, kills and a file that grows."""

import contextlib
import gc
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

import limpet as lp
from helpers.commands import run_in_process
from helpers.monitor import Monitor, get_expected, make_levels
from limpet.server.db import Store

VALUES = make_levels(900)


class Server:
    """A server on a free port."""

    def __init__(self, folder, *words):
        self.folder, self.log = folder, folder / "log.txt"
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "limpet", "serve", "--no-open", *words]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        match = wait_until(lambda: re.search(r"serving at (http://\S+), database (\S+)", self.read_log()), self)
        self.url, self.store = match[1], match[2]

    def read_log(self):
        return self.log.read_text()[self.begin :]

    def get(self, path):
        response = httpx.get(self.url + path, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    def stop(self, signal_number):
        self.process.send_signal(signal_number)
        return self.process.wait(60)


def wait_until(condition, server, seconds=120.0):
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert server.process.poll() is None, server.read_log()
        assert time.monotonic() < until, server.read_log()
        time.sleep(0.05)
    return value


def make_lines(first, last):
    return "".join(f"{i},{VALUES[i]}\n" for i in range(first, last))


def test_growing_file_is_processed_through_a_crash_and_a_stop(tmp_path):
    source, config = tmp_path / "pump.csv", tmp_path / "serve.toml"
    source.write_text("time,level\n" + make_lines(0, 300))
    config.write_text('source = "pump.csv"\nport = 0\ndatabase = "kept.db"\nlog_format = "text"\n')
    first = Server(tmp_path, "--config", "serve.toml")
    try:
        assert first.store == "kept.db"
        assert first.url.startswith("http://127.0.0.1:")
        with source.open("a") as file:
            file.write(make_lines(300, 500) + f"500,{VALUES[500]}"[:4])  # a line that is not complete
        wait_until(lambda: first.get("/streams")["n_points"] >= 500, first)
        assert first.get("/sources")[0]["state"] == "running"
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    finally:
        first.process.kill()
    with source.open("a") as file:
        file.write(make_lines(500, 700)[4:])

    second = Server(tmp_path, "--config", "serve.toml")
    try:
        wait_until(lambda: second.get("/streams")["n_points"] >= 700, second)
        with source.open("a") as file:
            file.write(make_lines(700, 900))
        wait_until(lambda: second.get("/streams")["n_points"] >= 900, second)
        points, (state, trace) = second.get("/streams/pump/points"), get_expected(VALUES)
        assert points["rows"] == list(range(900))
        assert points["values"] == [VALUES]
        assert points["times"] == list(range(900))
        np.testing.assert_array_equal(np.array(points["score"], np.float64), trace.score)
        alarms = second.get("/alarms?stream=pump")["alarms"][::-1]
        assert [(alarm["kind"], alarm["row"]) for alarm in alarms] == [
            (alarm.kind, alarm.row) for alarm in trace.alarms
        ]
        with httpx.stream("GET", f"{second.url}/streams/pump/events", timeout=60) as page:
            events = page.iter_lines()
            next(events)
            assert second.stop(signal.SIGTERM) == 0, "although a page listens"
            with contextlib.suppress(httpx.TransportError):
                list(events)
        assert "stopped" in second.read_log()
        assert "Traceback" not in second.read_log()
    finally:
        second.process.kill()
    monitor = Monitor(tmp_path / "kept.db")
    try:
        assert monitor.processor.checkpointed_rows == {1: 900}, "the checkpoint at the end has everything"
        assert monitor.states() == {"pump": state}
    finally:
        monitor.stop()


# Errors at start-up are one line


@pytest.fixture
def run_with_error(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIMPET_TOKEN", raising=False)

    def run(*words):
        code, out, error = run_in_process(["serve", "--no-open", "--port", 0, *words], capsys, monkeypatch)
        assert code == 2, error
        assert out == ""
        last = error.splitlines()[-1]
        assert last.startswith("limpet: ")
        assert "Traceback" not in error
        return last

    return run


def test_port_in_use_is_an_error(run_with_error):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        port = bound.getsockname()[1]
        assert (
            run_with_error("--port", port)
            == f"limpet: host, port: cannot listen at 127.0.0.1:{port}: address already in use."
        )


def test_failed_start_leaves_no_open_socket(run_with_error, recwarn):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        run_with_error("--port", bound.getsockname()[1])
    run_with_error("none.csv")
    gc.collect()
    assert not [str(warning.message) for warning in recwarn if issubclass(warning.category, ResourceWarning)]


def test_missing_source_is_an_error(run_with_error, tmp_path):
    assert "source: must be an existing file, got none.csv" in run_with_error("none.csv")
    Store(tmp_path / "limpet.db").close()  # which was released


def test_unusable_database_is_an_error(run_with_error, tmp_path):
    (tmp_path / "notes.txt").write_text("some notes\n" * 100)
    assert "notes.txt cannot be opened: file is not a database" in run_with_error("--database", "notes.txt")
    assert "no such file or directory" in run_with_error("--database", "no/folder.db")
    monitor = Monitor(tmp_path / "kept.db", lp.Detector(far=0.01))
    assert "kept.db is in use by another server" in run_with_error("--database", "kept.db")
    monitor.stop()
    assert "made with" in run_with_error("--database", "kept.db")
    Store(tmp_path / "kept.db").close()


def test_invalid_options_are_errors(run_with_error, tmp_path):
    (tmp_path / "bad.toml").write_text("retain_point = 5\n")
    assert "Did you mean 'retain_points'" in run_with_error("--config", "bad.toml")
    assert "--retain-points" in run_with_error("--retain-points", 5)
    assert "n_components" in run_with_error("--n-components", "auto")
    assert "--port: must be an integer of at least 0 and at most 65535" in run_with_error("--port", 99999)


def test_help_fits_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run_in_process(["serve", "--help"], capsys, monkeypatch)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    shown = out[out.index("Examples:") : out.index("SIGTERM")].strip().splitlines()
    assert all(line.strip().startswith(("Examples", "limpet serve", "curl", "LIMPET_TOKEN")) for line in shown), out
    for flag in ("host", "port", "database", "token-file", "retain-points", "max-streams", "rate", "max-body", "demo"):
        assert f"--{flag}" in out


def test_malformed_records_and_invalid_points_of_a_source_are_counted(tmp_path):
    lines = make_lines(0, 300) + "broken\n" + "300,1e200\n301,-inf\n" + make_lines(302, 400)
    (tmp_path / "pump.csv").write_text("time,level\n" + lines)
    server = Server(tmp_path, "pump.csv", "--port", "0")
    try:
        wait_until(lambda: server.get("/sources")[0]["n_records"] >= 401, server)
        source = server.get("/sources")[0]
        assert (source["n_malformed"], source["n_invalid"]) == (1, 2)
        assert server.get("/streams")["n_points"] == 398
    finally:
        server.process.kill()
