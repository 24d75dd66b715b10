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
from helpers.commands import here
from helpers.monitor import Monitor, expected, levels
from limpet.server.db import Store

VALUES = levels(900)


class Serve:
    """A server on a free port."""

    def __init__(self, folder, *words):
        self.folder, self.log = folder, folder / "log.txt"
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "limpet", "serve", "--no-open", *words]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        match = wait_for(lambda: re.search(r"serving at (http://\S+), database (\S+)", self.read_log()), self)
        self.url, self.store = match[1], match[2]

    def read_log(self):
        return self.log.read_text()[self.begin :]

    def get(self, path):
        response = httpx.get(self.url + path, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(60)


def wait_for(happened, server, seconds=120.0):
    until = time.monotonic() + seconds
    while not (value := happened()):
        assert server.process.poll() is None, server.read_log()
        assert time.monotonic() < until, server.read_log()
        time.sleep(0.05)
    return value


def lines(first, last):
    return "".join(f"{i},{VALUES[i]}\n" for i in range(first, last))


def test_a_file_that_grows_through_a_crash_and_to_an_orderly_end(tmp_path):
    source, config = tmp_path / "pump.csv", tmp_path / "serve.toml"
    source.write_text("time,level\n" + lines(0, 300))
    config.write_text('source = "pump.csv"\nport = 0\ndatabase = "kept.db"\nlog_format = "text"\n')
    first = Serve(tmp_path, "--config", "serve.toml")
    try:
        assert first.store == "kept.db"
        assert first.url.startswith("http://127.0.0.1:")
        with source.open("a") as file:
            file.write(lines(300, 500) + f"500,{VALUES[500]}"[:4])  # a line that is not complete
        wait_for(lambda: first.get("/streams")["n_points"] >= 500, first)
        assert first.get("/sources")[0]["state"] == "running"
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    finally:
        first.process.kill()
    with source.open("a") as file:
        file.write(lines(500, 700)[4:])

    second = Serve(tmp_path, "--config", "serve.toml")
    try:
        wait_for(lambda: second.get("/streams")["n_points"] >= 700, second)
        with source.open("a") as file:
            file.write(lines(700, 900))
        wait_for(lambda: second.get("/streams")["n_points"] >= 900, second)
        points, (state, trace) = second.get("/streams/pump/points"), expected(VALUES)
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
            assert second.end(signal.SIGTERM) == 0, "although a page listens"
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


# Errors at the start are one line


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIMPET_TOKEN", raising=False)

    def run(*words):
        code, out, error = here(["serve", "--no-open", "--port", 0, *words], capsys, monkeypatch)
        assert code == 2, error
        assert out == ""
        last = error.splitlines()[-1]
        assert last.startswith("limpet: ")
        assert "Traceback" not in error
        return last

    return run


def test_a_port_that_is_in_use(refused):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        port = bound.getsockname()[1]
        assert (
            refused("--port", port) == f"limpet: host, port: cannot listen at 127.0.0.1:{port}: address already in use."
        )


def test_a_start_that_fails_leaves_no_socket_open(refused, recwarn):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        refused("--port", bound.getsockname()[1])
    refused("none.csv")
    gc.collect()
    assert not [str(warning.message) for warning in recwarn if issubclass(warning.category, ResourceWarning)]


def test_a_source_that_is_not_there(refused, tmp_path):
    assert "none.csv: no such file" in refused("none.csv")
    Store(tmp_path / "limpet.db").close()  # which was let go of


def test_a_store_that_cannot_be_used(refused, tmp_path):
    (tmp_path / "notes.txt").write_text("some notes\n" * 100)
    assert "notes.txt cannot be opened: file is not a database" in refused("--database", "notes.txt")
    assert "no such file or directory" in refused("--database", "no/folder.db")
    monitor = Monitor(tmp_path / "kept.db", lp.Detector(far=0.01))
    assert "kept.db is in use by another server" in refused("--database", "kept.db")
    monitor.stop()
    assert "made with" in refused("--database", "kept.db")
    Store(tmp_path / "kept.db").close()


def test_settings_that_make_no_sense(refused, tmp_path):
    (tmp_path / "bad.toml").write_text("retain_point = 5\n")
    assert "Did you mean 'retain_points'" in refused("--config", "bad.toml")
    assert "--retain-points" in refused("--retain-points", 5)
    assert "n_components" in refused("--n-components", "auto")
    assert "--port: must be an integer of at least 0 and at most 65535" in refused("--port", 99999)


def test_the_help_fits_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = here(["serve", "--help"], capsys, monkeypatch)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    shown = out[out.index("Examples:") : out.index("SIGTERM")].strip().splitlines()
    assert all(line.strip().startswith(("Examples", "limpet serve", "curl", "LIMPET_TOKEN")) for line in shown), out
    for flag in ("host", "port", "database", "token-file", "retain-points", "max-streams", "rate", "max-body", "demo"):
        assert f"--{flag}" in out
