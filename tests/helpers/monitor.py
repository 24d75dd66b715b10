"""The live monitor for tests: without HTTP, behind FastAPI's test client, and behind a real socket."""

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
from limpet.server.ingest.parse import IngestRequest, parse_stream_points
from limpet.server.ingest.processor import GroupProcessor
from limpet.server.ingest.writer import WriterThread
from limpet.server.monitor import MonitorConfig
from limpet.server.routes.alarms import _acknowledge_all, _apply_patch
from limpet.server.schemas import AlarmPatch

LONG_TIME = 3600.0  # seconds between checkpoints: none comes by itself
PATIENCE = 240.0  # seconds: kernels may have to be compiled


def levels(n=400, seed=7, shift_at=260):
    """A level with a few outliers that changes once; it raises alarms of both kinds."""
    values = np.random.default_rng(seed).normal(20.0, 0.5, n).round(3)
    values[120::97] += 40.0
    values[shift_at:] += 6.0
    return values.tolist()


class Monitor:
    """Store, desk and keeper, as the server has them."""

    def __init__(self, place, learner=None, keep=10_000, most=1000):
        self.store = Store(place)
        try:
            self.desk = GroupProcessor(self.store, learner or lp.SRA(), most)
        except BaseException:
            self.store.close()
            raise
        self.told = []
        self.keeper = WriterThread(self.desk, keep, self.told.append, LONG_TIME)

    def submit(self, key, points, **more):
        return self.keeper.submit(IngestRequest([parse_stream_points(key, points)], **more))

    def post(self, key, points, **more):
        return self.submit(key, points, **more).result(PATIENCE)[0]

    def do(self, work):
        """In the one thread that writes."""
        return self.keeper.call(work).result(PATIENCE)

    def checkpoint(self, pieces=None):
        """A whole checkpoint, or so many pieces of one."""

        def write():
            writing, n = self.desk.start_checkpoint(), 0
            while pieces is None or n < pieces:
                with self.store.write_transaction() as connection:
                    if writing.write_next_chunk(connection):
                        self.desk.finish_checkpoint(writing)
                        return
                n += 1

        self.do(write)

    def condense(self):
        def work():
            self.keeper._compactor.add_candidates([known.entry.id for known in self.desk.registry.iter_streams()], 0)
            while self.keeper._compactor.has_candidates:
                self.keeper._compactor.compact(self.desk)

        self.do(work)

    def alarms(self):
        """All, the newest first."""
        with self.store.read_connection() as connection:
            return find_alarms(connection, stream_id=None, is_open=None, before=None, limit=1000)[1]

    def acknowledge(self, number, note):
        return self.do(lambda: _apply_patch(self, number, AlarmPatch(acknowledged=True, note=note)))

    def acknowledge_all(self):
        return self.do(lambda: _acknowledge_all(self, None))

    def known(self, key):
        return self.desk.registry.get(key)

    def crash(self):
        """What `kill -9` leaves behind: all that was committed, nothing else."""
        self.keeper._finish = lambda: None
        self.stop()

    def stop(self):
        self.keeper.stop()
        self.store.close()

    def board(self):
        """All that is told of the streams; when a point came is not kept, only its time."""
        listed = self.desk.registry.list_streams("", "name", 0, 1000)
        del listed["seq"]
        for stream in listed["streams"]:
            del stream["last_seen"]
        return listed

    def states(self):
        """Of each stream, the state to the last bit."""
        return self.do(lambda: {known.entry.key: self._state(known) for known in self.desk.registry.iter_streams()})

    def _state(self, known):
        return self.desk.models.get(known.entry.width, known.entry.number).state.tobytes()


def tables(store, without=()):
    """All rows of a store."""
    with store.reading() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(table)).all()))
            for name, table in METADATA.tables.items()
            if name not in without
        }


@contextlib.contextmanager
def client_of(place, rules=None, feeding=None, **more):
    """A client of a server in this process; `client.app.state` has its parts."""
    settings = MonitorConfig(str(place), lp.SRA(), checkpoint_interval_s=LONG_TIME, **more)
    with TestClient(make_app(settings, rules, feeding), base_url="http://localhost") as client:
        yield client


@contextlib.contextmanager
def served(app, port=0):
    """The app behind a real socket; its URL."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind(("127.0.0.1", port))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([own],), daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            threading.Event().wait(0.01)
        yield f"http://127.0.0.1:{own.getsockname()[1]}"
    finally:
        if hasattr(app.state, "watching"):
            app.state.monitor.hub.closed = True
        server.should_exit = True
        thread.join(20)
        own.close()


def expected(values):
    """What lp.SRA makes of the same points: its state, and its trace."""
    learner = lp.SRA()
    trace = learner.process(np.array(values, np.float64))
    return learner.state.tobytes(), trace


def sqlite_at(folder: Path) -> str:
    return str(folder / "store.db")
