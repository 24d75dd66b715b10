"""`kill -9` of the server under load: a slice of `limpet bench serve_crash`."""

import json
import sqlite3

from harness.retrying_client import Client
from harness.server_store_check import compare_store
from limpet_lab.bench.serve_crash import run_with_kills


def test_acknowledged_points_are_stored_once_and_learned_as_in_an_uninterrupted_run(tmp_path):
    """In one test, so that the server is killed once and not in each process that tests run in."""
    store = str(tmp_path / "a.db")
    clients, after, _ = run_with_kills(store, tmp_path, kills=1)
    assert [client.wrong for client in clients] == [[]] * len(clients)
    assert all(len(client.kept) >= 3 * client.together for client in clients)
    assert sum(client.unanswered for client in clients) > 0
    assert (after.lost, after.doubled, after.more) == (0, 0, 0)
    assert after.n_alarms > 0
    assert after.equal == dict.fromkeys(after.equal, True)
    for fault in ("lost", "doubled", "more", "scores", "states", "alarms"):
        assert is_fault_detected(fault, store, clients, tmp_path / f"{fault}.db"), fault


def is_fault_detected(fault, store, clients, path):
    """Return whether the check detects a fault in a copy of the store; otherwise the test above proves nothing."""
    client = max(clients, key=lambda candidate: len(candidate.alarms) + (candidate.width == 1))
    with sqlite3.connect(store) as whole, sqlite3.connect(path) as copy:
        whole.backup(copy)
    kept = client.kept
    if fault in ("lost", "more"):
        kept = [*kept, [1e3] * client.width] if fault == "lost" else kept[:-1]
    with sqlite3.connect(path) as copy:
        number = copy.execute("select id from streams where key = ?", [client.key]).fetchone()[0]
        row, body = copy.execute("select row, body from points where stream = ? limit 1", [number]).fetchone()
        record = json.loads(body)
        if fault == "doubled":
            record["values"] = [[column[0], column[0], *column[2:]] for column in record["values"]]
        if fault == "scores":
            record["score"][-1] = (record["score"][-1] or 0.0) + 1e-9
        changed = json.dumps(record)
        copy.execute("update points set body = ? where stream = ? and row = ?", [changed, number, row])
        if fault == "alarms":
            change = "json_set(record, '$.onset', json_extract(record, '$.onset') + 1)"
            copy.execute(f"update alarms set record = {change} where stream = ?", [number])
    if fault == "states":
        kept = [[value + 1e-9 if value else value for value in kept[0]], *kept[1:]]
    other = Client(client.key, client.width, client.together, client.named, 0, 0, kept, client.alarms)
    after = compare_store(str(path), [other])
    return getattr(after, fault) if fault in ("lost", "doubled", "more") else not after.equal[fault]
