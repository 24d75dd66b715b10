"""Server-sent events over a real socket: no event is lost or duplicated by a lost connection."""

import json
import threading
import time

import httpx
import pytest

import limpet as lp
from helpers.monitor import CHECKPOINT_INTERVAL_S, make_levels, serve_app
from limpet.server import monitor
from limpet.server.app import make_app
from limpet.server.monitor import MonitorConfig
from limpet.server.security import SecurityConfig

VALUES = make_levels(3000)


def make_server_app(location):
    return make_app(
        MonitorConfig(str(location), lp.Detector(), checkpoint_interval_s=CHECKPOINT_INTERVAL_S),
        SecurityConfig(max_requests_per_s=1e9),
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return make_server_app(tmp_path_factory.mktemp("events") / "store.db")


@pytest.fixture(scope="module")
def url(app):
    with serve_app(app) as url:
        yield url


def post(url, key, content):
    response = httpx.post(f"{url}/streams/{key}/points", json=content, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


def read_events(url, path, condition, last_id=None):
    """Return events (name, id, data) until `condition` holds; then disconnect."""
    received, headers = [], {} if last_id is None else {"Last-Event-ID": last_id}
    with httpx.stream("GET", url + path, headers=headers, timeout=30) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        item, until = {}, time.monotonic() + 25
        for line in response.iter_lines():
            assert time.monotonic() < until, received
            if line:
                name, _, value = line.partition(": ")
                item[name] = value
            else:
                if "event" in item:
                    received.append((item["event"], item.get("id"), json.loads(item["data"])))
                    if condition(received):
                        return received
                elif condition(received):
                    return received
                item = {}
    return received


def get_rows(received):
    return [row for name, _, data in received if name == "points" for row in data["rows"]]


def test_reconnections_lose_and_duplicate_no_event(url):
    post(url, "cut", VALUES[:100])

    def post_batches():
        for begin in range(100, 3000, 100):
            post(url, "cut", VALUES[begin : begin + 100])
            time.sleep(0.02)

    thread = threading.Thread(target=post_batches)
    thread.start()
    received, last = (
        read_events(url, "/streams/cut/events?after=49", lambda received: len(get_rows(received)) >= 50),
        None,
    )
    while get_rows(received)[-1] < 2999:
        last = received[-1][1]
        assert int(last) == get_rows(received)[-1]
        n = 1 + len(received) % 2
        received += read_events(
            url, "/streams/cut/events", lambda new, n=n: len(new) >= n or 2999 in get_rows(new), last
        )
    thread.join()
    assert get_rows(received) == list(range(50, 3000))
    values = [value for _, _, data in received for value in data["values"][0]]
    assert values == VALUES[50:]
    raised = [alarm["id"] for _, _, data in received for alarm in data["alarms"]]
    stored_alarms = httpx.get(f"{url}/alarms?stream=cut").json()["alarms"][::-1]
    assert raised == [alarm["id"] for alarm in stored_alarms if alarm["row"] >= 50]
    assert raised


def test_events_resume_after_a_restart_of_the_server(tmp_path):
    with serve_app(make_server_app(tmp_path / "store.db")) as url:
        post(url, "a", VALUES[:200])
        received = read_events(url, "/streams/a/events?after=-1", lambda received: len(get_rows(received)) >= 200)
        whole = read_events(url, "/events", lambda _: True)
        port = int(url.rpartition(":")[2])
    assert whole == []
    with serve_app(make_server_app(tmp_path / "store.db"), port) as url:
        post(url, "a", VALUES[200:300])
        received += read_events(url, "/streams/a/events", lambda new: len(get_rows(new)) >= 100, received[-1][1])
        listed = read_events(url, "/events", len, "0123abcd-7")  # an id of the server before
    assert get_rows(received) == list(range(300))
    assert [item["key"] for item in listed[0][2]["streams"]] == ["a"]


def test_deleted_stream_is_reported(url):
    post(url, "gone", [1, 2, 3])
    threading.Timer(0.3, lambda: httpx.delete(f"{url}/streams/gone")).start()
    assert [name for name, _, _ in read_events(url, "/streams/gone/events", lambda _: False)] == ["deleted"]
    post(url, "gone", 4)
    reset = read_events(url, "/streams/gone/events", lambda received: len(received) == 2, "2")
    assert [name for name, _, _ in reset] == ["reset", "points"]
    assert get_rows(reset) == [0]


@pytest.mark.parametrize("last", ["--5", "-1", "x", "9" * 90, "", "1.5", "0"])
def test_invalid_last_event_ids_are_accepted(url, last):
    post(url, "ids", [1, 2])
    more = threading.Timer(0.2, post, (url, "ids", [3]))
    more.start()
    received = read_events(
        url, "/streams/ids/events", lambda events: any(event[0] == "points" for event in events), last
    )
    more.join()
    assert get_rows(received)
    httpx.delete(f"{url}/streams/ids")


def test_events_of_the_list_have_the_changed_streams(url):
    post(url, "one", 1)
    changes = [("one", VALUES[:200]), ("two", 1), ("one", VALUES[200:400])]
    workers = [threading.Timer(0.3 + 0.5 * i, post, (url, *change)) for i, change in enumerate(changes)]
    for worker in workers:
        worker.start()
    received = read_events(url, "/events", lambda received: sum(len(data["streams"]) for _, _, data in received) >= 3)
    for worker in workers:
        worker.join()
    assert [[item["key"] for item in data["streams"]] for _, _, data in received] == [["one"], ["two"], ["one"]]
    assert received[-1][2]["open_alarms"] > 0
    again = read_events(url, "/events", len, received[0][1])
    assert {item["key"] for item in again[0][2]["streams"]} == {"one", "two"}, "what has changed since"
    assert again[0][1] == received[-1][1]


def test_acknowledged_alarms_are_reported(url):
    raised = post(url, "seen", VALUES[:400])["alarms"]

    def acknowledge():
        httpx.patch(f"{url}/alarms/{raised[0]['id']}", json={"acknowledged": True, "note": "seen"})

    threading.Timer(0.3, acknowledge).start()
    name, number, alarm = read_events(url, "/streams/seen/events", len)[0]
    assert (name, number) == ("alarm_changed", None), "it has no id, so that rows resume"
    assert alarm["note"] == "seen"
    assert alarm["acknowledged_at"]


def test_listeners_continue_after_a_failed_group(app, url, monkeypatch):
    post(url, "failing", [1, 2])
    live = app.state.monitor

    def fail_and_post():
        process_group = live.processor.process_group
        monkeypatch.setattr(live.processor, "process_group", lambda posts: process_group(posts) and 1 / 0)
        assert httpx.post(f"{url}/streams/other/points", json=[1], timeout=60).status_code == 503
        monkeypatch.setattr(live.processor, "process_group", process_group)
        post(url, "failing", [3])

    threading.Timer(0.3, fail_and_post).start()
    received = read_events(url, "/streams/failing/events", lambda received: len(get_rows(received)))
    assert get_rows(received) == [2]


def test_too_many_listeners_are_an_error(url, monkeypatch):
    monkeypatch.setattr(monitor, "MAX_LISTENERS", 0)
    for path in ("/events", "/streams/cut/events"):
        post(url, "cut", 1)
        response = httpx.get(url + path)
        assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_listeners")


def test_slow_listener_uses_bounded_memory():
    """Unread rows stay in the database only; of notices the last few are kept in memory."""
    listener = monitor.Listener()
    for number in range(10_000):
        listener.wake({"number": number})
    assert [notice["number"] for notice in listener.take_notices()] == list(range(10_000))[
        -monitor.MAX_PENDING_NOTICES :
    ]


def test_disconnected_listener_is_removed(app, url):
    post(url, "left", 1)
    live = app.state.monitor
    read_events(url, "/streams/left/events?after=-1", len)
    until = time.monotonic() + 20
    while live.get_stream("left").entry.id in live.notifier._listeners and time.monotonic() < until:
        post(url, "left", 1)
        time.sleep(0.05)
    assert live.get_stream("left").entry.id not in live.notifier._listeners
