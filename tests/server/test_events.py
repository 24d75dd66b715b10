"""Server-sent events over a real socket: nothing is lost and nothing comes twice, whatever happens to the line."""

import json
import threading
import time

import httpx
import pytest

import limpet as lp
from helpers.monitor import CHECKPOINT_INTERVAL_S, levels, served
from limpet.server.app import make_app
from limpet.server.ingest import notifier
from limpet.server.monitor import MonitorConfig
from limpet.server.security import SecurityConfig

VALUES = levels(3000)


def new_app(place):
    return make_app(
        MonitorConfig(str(place), lp.Detector(), checkpoint_interval_s=CHECKPOINT_INTERVAL_S), SecurityConfig(max_requests_per_s=1e9)
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return new_app(tmp_path_factory.mktemp("events") / "store.db")


@pytest.fixture(scope="module")
def url(app):
    with served(app) as url:
        yield url


def post(url, key, content):
    answer = httpx.post(f"{url}/streams/{key}/points", json=content, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listen(url, path, enough, last=None):
    """Events (name, id, data) until `enough` says so of them; then the line is cut."""
    heard, headers = [], {} if last is None else {"Last-Event-ID": last}
    with httpx.stream("GET", url + path, headers=headers, timeout=30) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        one, until = {}, time.monotonic() + 25
        for line in answer.iter_lines():
            assert time.monotonic() < until, heard
            if line:
                name, _, value = line.partition(": ")
                one[name] = value
            else:
                if "event" in one:
                    heard.append((one["event"], one.get("id"), json.loads(one["data"])))
                    if enough(heard):
                        return heard
                elif enough(heard):
                    return heard
                one = {}
    return heard


def rows_of(heard):
    return [row for name, _, data in heard if name == "points" for row in data["rows"]]


def test_nothing_is_lost_or_doubled_when_the_line_is_cut(url):
    post(url, "cut", VALUES[:100])

    def work():
        for begin in range(100, 3000, 100):
            post(url, "cut", VALUES[begin : begin + 100])
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    heard, last = listen(url, "/streams/cut/events?after=49", lambda heard: len(rows_of(heard)) >= 50), None
    while rows_of(heard)[-1] < 2999:
        last = heard[-1][1]
        assert int(last) == rows_of(heard)[-1]
        n = 1 + len(heard) % 2
        heard += listen(url, "/streams/cut/events", lambda new, n=n: len(new) >= n or 2999 in rows_of(new), last)
    thread.join()
    assert rows_of(heard) == list(range(50, 3000))
    values = [value for _, _, data in heard for value in data["values"][0]]
    assert values == VALUES[50:]
    raised = [alarm["id"] for _, _, data in heard for alarm in data["alarms"]]
    kept = httpx.get(f"{url}/alarms?stream=cut").json()["alarms"][::-1]
    assert raised == [alarm["id"] for alarm in kept if alarm["row"] >= 50]
    assert raised


def test_it_goes_on_after_a_restart_of_the_server(tmp_path):
    with served(new_app(tmp_path / "store.db")) as url:
        post(url, "a", VALUES[:200])
        heard = listen(url, "/streams/a/events?after=-1", lambda heard: len(rows_of(heard)) >= 200)
        whole = listen(url, "/events", lambda _: True)
        port = int(url.rpartition(":")[2])
    assert whole == []
    with served(new_app(tmp_path / "store.db"), port) as url:
        post(url, "a", VALUES[200:300])
        heard += listen(url, "/streams/a/events", lambda new: len(rows_of(new)) >= 100, heard[-1][1])
        listed = listen(url, "/events", len, "0123abcd-7")  # an id of the server before
    assert rows_of(heard) == list(range(300))
    assert [one["key"] for one in listed[0][2]["streams"]] == ["a"]


def test_a_stream_that_was_deleted_is_told(url):
    post(url, "gone", [1, 2, 3])
    threading.Timer(0.3, lambda: httpx.delete(f"{url}/streams/gone")).start()
    assert [name for name, _, _ in listen(url, "/streams/gone/events", lambda _: False)] == ["deleted"]
    post(url, "gone", 4)
    reset = listen(url, "/streams/gone/events", lambda heard: len(heard) == 2, "2")
    assert [name for name, _, _ in reset] == ["reset", "points"]
    assert rows_of(reset) == [0]


@pytest.mark.parametrize("last", ["--5", "-1", "x", "9" * 90, "", "1.5", "0"])
def test_any_id_may_come(url, last):
    post(url, "ids", [1, 2])
    more = threading.Timer(0.2, post, (url, "ids", [3]))
    more.start()
    heard = listen(url, "/streams/ids/events", lambda heard: any(name == "points" for name, _, _ in heard), last)
    more.join()
    assert rows_of(heard)
    httpx.delete(f"{url}/streams/ids")


def test_the_list_hears_of_what_has_changed(url):
    post(url, "one", 1)
    changes = [("one", VALUES[:200]), ("two", 1), ("one", VALUES[200:400])]
    workers = [threading.Timer(0.3 + 0.5 * i, post, (url, *change)) for i, change in enumerate(changes)]
    for worker in workers:
        worker.start()
    heard = listen(url, "/events", lambda heard: sum(len(data["streams"]) for _, _, data in heard) >= 3)
    for worker in workers:
        worker.join()
    assert [[one["key"] for one in data["streams"]] for _, _, data in heard] == [["one"], ["two"], ["one"]]
    assert heard[-1][2]["open_alarms"] > 0
    again = listen(url, "/events", len, heard[0][1])
    assert {one["key"] for one in again[0][2]["streams"]} == {"one", "two"}, "what has changed since"
    assert again[0][1] == heard[-1][1]


def test_alarms_that_somebody_looked_at(url):
    raised = post(url, "seen", VALUES[:400])["alarms"]

    def work():
        httpx.patch(f"{url}/alarms/{raised[0]['id']}", json={"acknowledged": True, "note": "seen"})

    threading.Timer(0.3, work).start()
    name, number, alarm = listen(url, "/streams/seen/events", len)[0]
    assert (name, number) == ("alarm_changed", None), "it has no id, so that rows go on where they were"
    assert alarm["note"] == "seen"
    assert alarm["acknowledged_at"]


def test_listeners_hear_on_after_a_group_that_failed(app, url, monkeypatch):
    post(url, "failing", [1, 2])
    live = app.state.monitor

    def work():
        take = live.processor.process_group
        monkeypatch.setattr(live.processor, "process_group", lambda posts: take(posts) and 1 / 0)
        assert httpx.post(f"{url}/streams/other/points", json=[1], timeout=60).status_code == 503
        monkeypatch.setattr(live.processor, "process_group", take)
        post(url, "failing", [3])

    threading.Timer(0.3, work).start()
    heard = listen(url, "/streams/failing/events", lambda heard: len(rows_of(heard)))
    assert rows_of(heard) == [2]


def test_there_may_be_so_many_listeners(url, monkeypatch):
    monkeypatch.setattr(notifier, "MAX_LISTENERS", 0)
    for path in ("/events", "/streams/cut/events"):
        post(url, "cut", 1)
        answer = httpx.get(url + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_listeners")


def test_who_reads_slowly_costs_no_memory():
    """Rows that he has not read are in the store, and not kept for him; of notices the last few are."""
    listener = notifier.Listener()
    for number in range(10_000):
        listener.wake({"number": number})
    assert [notice["number"] for notice in listener.take_notices()] == list(range(10_000))[
        -notifier.MAX_PENDING_NOTICES :
    ]


def test_who_is_gone_is_forgotten(app, url):
    post(url, "left", 1)
    live = app.state.monitor
    listen(url, "/streams/left/events?after=-1", len)
    until = time.monotonic() + 20
    while live.get_stream("left").entry.id in live.notifier._stream_listeners and time.monotonic() < until:
        post(url, "left", 1)
        time.sleep(0.05)
    assert live.get_stream("left").entry.id not in live.notifier._stream_listeners
