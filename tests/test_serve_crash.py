"""`kill -9` of the server under load: a slice of `holdfast bench serve_crash`."""

import json
import sqlite3

import pytest

from holdfast.benchmarks.afterwards import look
from holdfast.benchmarks.serve_crash import crash
from holdfast.benchmarks.stubborn import Client


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A store whose server was killed twice, and its clients."""
    folder = tmp_path_factory.mktemp("crash")
    store = str(folder / "a.db")
    clients, after, _ = crash(store, folder, kills=2)
    return store, clients, after


def test_what_was_answered_is_there_once_and_learnt_as_if_nothing_had_happened(crashed):
    _, clients, after = crashed
    assert [client.wrong for client in clients] == [[]] * len(clients)
    assert all(len(client.kept) >= 6 * client.together for client in clients)
    assert sum(client.unanswered for client in clients) > 0
    assert (after.lost, after.doubled, after.more) == (0, 0, 0)
    assert after.n_alarms > 0
    assert after.equal == dict.fromkeys(after.equal, True)


@pytest.mark.parametrize("fault", ["lost", "doubled", "more", "scores", "states", "alarms"])
def test_faults_would_be_seen(crashed, tmp_path, fault):
    """Or else the test above says nothing."""
    store, clients, _ = crashed
    client = max(clients, key=lambda one: len(one.alarms) + (one.width == 1))
    path = tmp_path / "copy.db"
    with sqlite3.connect(store) as whole, sqlite3.connect(path) as copy:
        whole.backup(copy)
    kept = client.kept
    if fault in ("lost", "more"):
        kept = [*kept, [1e3] * client.width] if fault == "lost" else kept[:-1]
    with sqlite3.connect(path) as copy:
        number = copy.execute("select id from streams where key = ?", [client.key]).fetchone()[0]
        row, body = copy.execute("select row, body from points where stream = ? limit 1", [number]).fetchone()
        told = json.loads(body)
        if fault == "doubled":
            told["x"] = [[column[0], column[0], *column[2:]] for column in told["x"]]
        if fault == "scores":
            told["score"][-1] = (told["score"][-1] or 0.0) + 1e-9
        changed = json.dumps(told)
        copy.execute("update points set body = ? where stream = ? and row = ?", [changed, number, row])
        if fault == "alarms":
            copy.execute("update alarms set onset = onset + 1 where stream = ?", [number])
    if fault == "states":
        kept = [[value + 1e-9 if value else value for value in kept[0]], *kept[1:]]
    other = Client(client.key, client.width, client.together, client.named, 0, 0, kept, client.alarms)
    after = look(str(path), [other])
    seen = getattr(after, fault) if fault in ("lost", "doubled", "more") else not after.equal[fault]
    assert seen
