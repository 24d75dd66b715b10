"""The live monitor for tests: without HTTP, behind FastAPI's test client, and behind a socket."""

import contextlib
import socket
import threading
from pathlib import Path

import numpy as np
import uvicorn
from fastapi.testclient import TestClient
from sqlalchemy import select

import limpet as lp
from limpet.server.app import make_app
from limpet.server.db import Store
from limpet.server.db.alarms import find_alarms
from limpet.server.db.schema import METADATA
from limpet.server.ingest.processor import GroupProcessor, IngestRequest
from limpet.server.ingest.writer import WriterThread
from limpet.server.monitor import MonitorConfig
from limpet.server.routes.alarms import _acknowledge_all, _apply_patch
from limpet.server.routes.points import parse_stream_points
from limpet.server.schemas import AlarmPatch

CHECKPOINT_INTERVAL_S = 3600.0  # longer than any test
TIMEOUT_S = 240.0  # kernels may have to be compiled


def make_levels(n=400, seed=7, shift_at=260):
    """Return a level with a few outliers and one change; it raises alarms of both kinds."""
    values = np.random.default_rng(seed).normal(20.0, 0.5, n).round(3)
    values[120::97] += 40.0
    values[shift_at:] += 6.0
    return values.tolist()


class Monitor:
    """Store, processor and writer, as the server has them."""

    def __init__(self, location, learner=None, retain_points=10_000, max_streams=1000):
        self.store = Store(location)
        try:
            self.processor = GroupProcessor(self.store, learner or lp.Detector(), max_streams)
        except BaseException:
            self.store.close()
            raise
        self.outcomes = []
        self.writer = WriterThread(self.processor, retain_points, self.outcomes.append, CHECKPOINT_INTERVAL_S)

    def submit(self, key, points, **fields):
        return self.writer.submit(IngestRequest([parse_stream_points(key, points)], **fields))

    def post(self, key, points, **fields):
        return self.submit(key, points, **fields).result(TIMEOUT_S)[0]

    def call(self, function):
        """Call a function in the writer thread."""
        return self.writer.call(function).result(TIMEOUT_S)

    def checkpoint(self, max_chunks=None):
        """Write a checkpoint, or some chunks of one."""

        def write():
            checkpoint, n = self.processor.start_checkpoint(), 0
            while max_chunks is None or n < max_chunks:
                with self.store.write_transaction() as connection:
                    if checkpoint.write_next_chunk(connection):
                        self.processor.finish_checkpoint(checkpoint)
                        return
                n += 1

        self.call(write)

    def compact(self):
        """Compact all streams."""
        compactor = self.writer._compactor

        def compact_all():
            compactor.add_candidates([stream.entry.id for stream in self.processor.registry.streams()], 0)
            while compactor.has_candidates:
                compactor.compact(self.processor)

        self.call(compact_all)

    def alarms(self):
        """Return all alarms, the newest first."""
        with self.store.read_connection() as connection:
            return find_alarms(connection, stream_id=None, is_open=None, before=None, limit=1000)[1]

    def acknowledge(self, alarm_id, note):
        return self.call(lambda: _apply_patch(self, alarm_id, AlarmPatch(acknowledged=True, note=note)))

    def acknowledge_all(self):
        return self.call(lambda: _acknowledge_all(self, None))

    def get_stream(self, key):
        return self.processor.registry.by_key.get(key)

    def crash(self):
        """Stop as `kill -9` would: all that was committed remains, nothing else."""
        self.writer._finish = lambda: None
        self.stop()

    def stop(self):
        self.writer.stop()
        self.store.close()

    def summaries(self):
        """Return the list of streams, without times of arrival, which are not stored."""
        page = self.processor.registry.list_streams("", "name", 0, 1000)
        del page["seq"]
        for stream in page["streams"]:
            del stream["last_seen"]
        return page

    def states(self):
        """Return the bytes of the state of each stream."""
        streams = self.processor.registry.streams
        return self.call(lambda: {stream.entry.key: self._state(stream) for stream in streams()})

    def _state(self, stream):
        return self.processor.learners.get(stream.entry.width, stream.entry.id).state.tobytes()


def read_tables(store, excluded=()):
    """Return all rows of a store by table."""
    with store.read_connection() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(table)).all()))
            for name, table in METADATA.tables.items()
            if name not in excluded
        }


@contextlib.contextmanager
def open_client(location, security=None, open_sources=None, **fields):
    """Yield a client of a server in this process; `client.app.state` has its parts."""
    config = MonitorConfig(str(location), lp.Detector(), checkpoint_interval_s=CHECKPOINT_INTERVAL_S, **fields)
    with TestClient(make_app(config, security, open_sources), base_url="http://localhost") as client:
        yield client


@contextlib.contextmanager
def serve_app(app, port=0):
    """Yield the URL of an app behind a socket."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            threading.Event().wait(0.01)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        if hasattr(app.state, "monitor"):
            app.state.monitor.notifier.closed = True
        server.should_exit = True
        thread.join(20)
        sock.close()


def get_expected(values):
    """Return state and trace of a Detector that has learned the same points."""
    learner = lp.Detector()
    trace = learner.process(np.array(values, np.float64))
    return learner.state.tobytes(), trace


def make_sqlite_path(folder: Path) -> str:
    return str(folder / "store.db")
