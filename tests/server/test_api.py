"""Every address of the API, and every way to be refused by it."""

import json
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from helpers.monitor import client_of, expected, levels, sqlite_at, tables
from limpet.server.db.engine import STORE_FORMAT
from limpet.server.routes.points import MAX_REQUEST_POINTS
from limpet.server.security import SecurityConfig

KEYS = iter(range(10**9))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(
        sqlite_at(tmp_path_factory.mktemp("api")),
        SecurityConfig(max_requests_per_s=1e9, max_body_mb=1.0),
        max_streams=1000,
    ) as client:
        client.post("/streams/full/points", json=levels())
        client.post("/streams/timed/points", json={"value": 1, "time": 100})
        client.post("/streams/dated/points", json={"values": {"a": 1, "b": 2}, "time": "2026-01-02T03:04:05Z"})
        yield client


def new():
    """A key that is not in use."""
    return f"stream {next(KEYS)}"


def post(client, key, content, **headers):
    response = client.post(f"/streams/{key}/points", json=content, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def read(client, path):
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def as_numbers(column):
    return np.array(column, np.float64)  # null is NaN


# What is accepted


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (1.5, [[1.5]]),
        ([1.5, 2, 3e-7], [[1.5, 2.0, 3e-7]]),
        ({"value": -4}, [[-4.0]]),
        ({"values": [1, None]}, [[1.0], [None]]),
        ([[1, 2], [3, None], [None, 0.1]], [[1.0, 3.0, None], [2.0, None, 0.1]]),
        ({"points": [1, {"value": 2}, [3]]}, [[1.0, 2.0, 3.0]]),
        (
            [{"values": {"b": 1, "a": 2}}, {"values": {"a": 3}}, {"values": {"a": None, "b": 4}}],
            [[1.0, None, 4.0], [2.0, 3.0, None]],
        ),
        ([1e150, -1e150, 5e-324, -0.0], [[1e150, -1e150, 5e-324, -0.0]]),
        ({"value": 12345678901234567890123}, [[12345678901234567890123.0]]),
    ],
)
def test_all_shapes_of_points(client, content, values):
    key = new()
    result = post(client, key, content)
    n = len(values[0])
    assert (result["stream"], result["accepted"], result["first_row"], result["last_row"]) == (key, n, 0, n - 1)
    stored = read(client, f"/streams/{key}/points")
    assert stored["values"] == values
    assert stored["rows"] == list(range(n))
    assert str(stored["values"][0][-1]) == str(values[0][-1]) or values[0][-1] is None, "zeros keep their sign"


def test_names_come_in_any_order(client):
    post(client, "dated", {"values": {"b": 20}, "time": "2026-01-02T03:04:06Z"})
    post(client, "dated", {"values": {"b": 30, "a": 10}})
    post(client, "dated", [[7, 8]])
    stored = read(client, "/streams/dated/points")
    assert stored["values"] == [[1, None, 10, 7], [2, 20, 30, 8]]
    assert stored["times"][:2] == ["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]
    assert read(client, "/streams/dated")["variables"] == ["a", "b"]


GOOD_KEYS = ["a b", "pump/1/flow", "ünï/コード", "100%", "a?b#c&d=e", "points", "a+b", "'; drop table points; --"]
GOOD_KEYS += ["<script>alert(1)</script>", "\\..\\", "..a", "🦫", "x" * 200]


@pytest.mark.parametrize("key", GOOD_KEYS)
def test_any_text_may_be_a_key(client, key):
    assert (
        client.post("/points", json=[{"stream": key, "value": 1}, {"stream": key, "value": 2}]).json()[0]["accepted"]
        == 2
    )
    path = f"/streams/{quote(key, safe='')}"
    assert read(client, path)["key"] == key
    assert read(client, f"{path}/points")["values"] == [[1.0, 2.0]]
    assert read(client, f"{path}/history")["counts"] == [1, 1]
    assert read(client, f"/streams?search={quote(key)}&limit=5")["streams"][0]["key"] == key
    assert read(client, f"/alarms?stream={quote(key)}")["total"] == 0
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_times_sort_out_what_comes_late_or_twice(client):
    key = new()
    post(client, key, {"value": 0, "time": 1.5e-05})
    result = post(client, key, [{"value": i, "time": time} for i, time in enumerate([10, 20, 15, 20, 21, 21])])
    assert (result["accepted"], result["skipped"]) == (5, {"late": 1, "duplicate": 0})
    assert post(client, key, {"value": 5, "time": 21})["skipped"] == {"late": 0, "duplicate": 1}
    again = post(client, key, {"value": 5, "time": 21.0})
    assert (again["accepted"], again["first_row"], again["last_row"]) == (0, None, None)
    assert read(client, f"/streams/{key}/points")["times"] == [1.5e-05, 10, 20, 20, 21, 21]


def test_a_post_with_a_name_is_learned_once(client):
    key, headers = new(), {"Idempotency-Key": "a1"}
    first = client.post(f"/streams/{key}/points", json=levels(), headers=headers)
    second = client.post(f"/streams/{key}/points", json=levels(), headers=headers)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert first.json()["alarms"]
    assert read(client, f"/streams/{key}")["n_points"] == 400
    other = client.post(f"/streams/{key}/points", json=[1.0], headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert post(client, new(), [1.0], **headers)["accepted"] == 1, "a name counts for one address"
    many = [client.post("/points", json=[{"stream": key, "value": 1}], headers=headers).json() for _ in range(2)]
    assert many[0] == many[1]
    assert read(client, f"/streams/{key}")["n_points"] == 401


# What is refused

BAD_BODIES = {
    b"": "malformed_json",
    b"{": "malformed_json",
    b"NaN": "malformed_json",
    b"[1, Infinity]": "malformed_json",
    b"1e999": "malformed_json",
    b'"\xff"': "malformed_json",
    b'"\\ud800"': "malformed_json",
    b"[" * 100_000: "malformed_json",
    b"null": "invalid_point",
    b"true": "invalid_point",
    b'"1.5"': "invalid_point",
    b"[]": "invalid_point",
    b"{}": "invalid_point",
    b'{"points": []}': "invalid_point",
    b'{"points": 1}': "invalid_point",
    b'{"points": [1], "more": 2}': "invalid_point",
    b'{"value": null}': "invalid_point",
    b'{"value": 1, "values": [1]}': "invalid_point",
    b'{"value": 1, "colour": "red"}': "invalid_point",
    b'{"value": 1, "stream": "other"}': "invalid_point",
    b'{"values": []}': "invalid_point",
    b'{"values": {}}': "invalid_point",
    b'{"values": {"a": "1"}}': "invalid_point",
    b'{"values": {"": 1}}': "invalid_point",
    b'{"values": {"a\\u0000": 1}}': "invalid_point",
    b'[{"values": {"a": 1}}, 2]': "invalid_point",
    b"[1, [null]]": "invalid_point",
    b"[1, [[2]]]": "invalid_point",
    b"1e151": "invalid_point",
    b"1" + b"0" * 400: "malformed_json",
    b"[[]]": "dimension_mismatch",
    b"[[1, 2], [3]]": "dimension_mismatch",
    json.dumps([[1] * 33]).encode(): "dimension_mismatch",
    b'{"value": 1, "time": "yesterday"}': "invalid_time",
    b'{"value": 1, "time": "2026-02-30"}': "invalid_time",
    b'{"value": 1, "time": true}': "invalid_time",
    b'{"value": 1, "time": [1]}': "invalid_time",
    b'{"value": 1, "time": 1e305}': "invalid_time",
    b'[{"value": 1, "time": 1}, {"value": 1, "time": "2026-01-01"}]': "invalid_time",
}
OF_STREAMS = {
    "full": {b"[[1, 2]]": "dimension_mismatch", b'{"values": {"a": 1}}': "unknown_variable"},
    "timed": {b'{"value": 1, "time": "2026-01-01"}': "invalid_time"},
    "dated": {
        b"[[1, 2, 3]]": "dimension_mismatch",
        b'{"values": {"c": 1}}': "unknown_variable",
        b'{"values": {"a": 1}, "time": 5}': "invalid_time",
        b'{"values": {"a": null}}': "invalid_point",
    },
}
CASES = [("new", body, code) for body, code in BAD_BODIES.items()]
CASES += [(key, body, code) for key, part in OF_STREAMS.items() for body, code in part.items()]


@pytest.mark.parametrize(("key", "body", "code"), CASES, ids=[f"{key} {body[:40]!r}" for key, body, _ in CASES])
def test_what_cannot_be_used_is_refused_and_nothing_stored(client, key, body, code):
    registry = client.app.state.monitor.processor.registry
    before, known = registry.list_streams("", "name", 0, 1000), registry.by_key.get(key)
    n_points = None if known is None else known.n_points
    response = client.post(f"/streams/{key}/points", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= response.status_code < 500
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["message"]
    assert registry.list_streams("", "name", 0, 1000) == before
    assert n_points == (None if known is None else known.n_points)


def test_nothing_of_what_was_refused_is_in_the_store(client):
    store = client.app.state.monitor.store
    before = tables(store)
    good, json_type = {"stream": new(), "value": 1}, {"Content-Type": "application/json"}
    for key, body, _ in CASES:
        client.post(f"/streams/{key}/points", content=body, headers={**json_type, "Idempotency-Key": "x"})
    for bad in (
        {"stream": "full", "value": "x"},
        {"value": 1},
        1.5,
        {"stream": 7, "value": 1},
        {"stream": "full", "values": [1, 2]},
    ):
        response = client.post("/points", json=[good, bad])
        assert response.status_code == 422, "all of a post, or nothing"
    assert tables(store) == before


BAD_KEYS = [
    "",
    " ",
    "a ",
    "\u2003a",
    "..",
    "a/../b",
    ".",
    "a//b",
    "/a",
    "a/",
    "a\nb",
    "a\x00b",
    "a\x7fb",
    "a\x85b",
    "x" * 201,
    "a/points",
    "a/history",
    "a/events",
]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_bad_keys(client, key):
    n_streams = len(client.app.state.monitor.processor.registry.by_key)
    response = client.post("/points", json=[{"stream": key, "value": 1}])
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_key")
    assert len(client.app.state.monitor.processor.registry.by_key) == n_streams


@pytest.mark.parametrize("path", ["a%00b", "x" * 201, "a%2F..%2Fb", "a%2Fpoints", "%2e%2e", "a%C2%85", "%ff%0d"])
def test_bad_keys_in_addresses(client, path):
    response = client.post(f"/streams/{path}/points", json=1)
    assert response.status_code in (404, 405, 422)
    for method in ("get", "delete"):
        assert getattr(client, method)(f"/streams/{path}").status_code in (404, 405)


def test_halves_of_characters(client):
    for body in (b'[{"stream": "\\ud800", "value": 1}]', b'[{"stream": "a", "\\udfff": 1}]'):
        assert client.post("/points", content=body, headers={"Content-Type": "application/json"}).status_code == 400
    for path, body in (
        ("/alarms/1", b'{"note": "\\ud800"}'),
        ("/alarms/1", b'{"\\ud800": 1}'),
        ("/alarms/acknowledge", b'{"stream": "\\ud800"}'),
    ):
        response = client.request(
            "PATCH" if path.endswith("1") else "POST", path, content=body, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in (400, 404, 422), response.text
        assert response.json()["error"]["code"] in ("invalid", "malformed_json", "unknown_stream")


def test_too_large(client):
    body, store = b"[" + b"1," * (600 * 1024) + b"1]", client.app.state.monitor.store
    n_streams = len(client.app.state.monitor.processor.registry.by_key)
    json_type = {"Content-Type": "application/json"}
    for content in (body, (body[i : i + 100_000] for i in range(0, len(body), 100_000))):  # with a length, and chunked
        response = client.post("/streams/large/points", content=content, headers=json_type)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
    response = client.patch("/alarms/1", content=(b'{"note": "' for _ in range(200_000)), headers=json_type)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
    response = client.post("/streams/large/points", json=[1] * (MAX_REQUEST_POINTS + 1))
    assert (response.status_code, response.json()["error"]["code"]) == (413, "too_many_points")
    assert len(client.app.state.monitor.processor.registry.by_key) == n_streams
    assert store.get_meta("format") == STORE_FORMAT


def test_too_many_streams(client):
    watching = client.app.state.monitor
    most, n = watching.processor.max_streams, len(watching.processor.registry.by_key)
    watching.processor.max_streams = n + 1
    try:
        two = client.post("/points", json=[{"stream": new(), "value": 1}, {"stream": new(), "value": 1}])
        assert (two.status_code, two.json()["error"]["code"]) == (429, "too_many_streams")
        assert len(watching.processor.registry.by_key) == n
        post(client, new(), 1)
        assert client.post(f"/streams/{new()}/points", json=1).status_code == 429
        post(client, "full", 20)
    finally:
        watching.processor.max_streams = most


def test_other_content_types_and_names(client):
    response = client.post("/streams/a/points", content=b"1", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_media_type")
    for name in ("a b", "x" * 201, "é".encode(), ""):
        response = client.post("/streams/a/points", json=1, headers={"Idempotency-Key": name})
        assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid")
    assert client.get("/streams/a").status_code == 404


UNKNOWN = [
    "/streams/none",
    "/streams/none/points",
    "/streams/none/history",
    "/streams/none/events",
    "/alarms?stream=none",
]


@pytest.mark.parametrize("path", UNKNOWN)
def test_unknown_streams(client, path):
    response = client.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_stream")


def test_other_things_that_there_are_not(client):
    for method, path, status, code in [
        ("GET", "/nothing", 404, "not_found"),
        ("PUT", "/streams", 405, "method_not_allowed"),
        ("DELETE", "/streams/none", 404, "unknown_stream"),
        ("PATCH", "/alarms/999999", 404, "unknown_alarm"),
        ("PATCH", "/alarms/x", 422, "invalid"),
        ("POST", "/alarms/acknowledge", 404, "unknown_stream"),
        ("GET", "/streams?limit=-1", 422, "invalid"),
        ("GET", "/streams?sort=size", 422, "invalid"),
        ("GET", "/streams/full/points?after=x", 422, "invalid"),
        ("GET", "/streams/full/points?limit=99999999", 422, "invalid"),
        ("GET", "/streams/full/history?buckets=0", 422, "invalid"),
        ("GET", f"/streams/full/history?first={2**60}", 422, "invalid"),
        ("GET", f"/alarms?before={2**70}", 422, "invalid"),
    ]:
        body = (
            {"json": {"stream": "none"} if path.endswith("acknowledge") else {}} if method in ("PATCH", "POST") else {}
        )
        response = client.request(method, path, **body)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code), path


# What is result


def test_the_list(client):
    stored = read(client, "/streams?limit=3")
    assert stored["streams"][0]["state"] == "alarming"
    assert len(stored["streams"]) == 3
    assert stored["n_alarming"] >= 1
    names = [item["key"] for item in read(client, "/streams?sort=name&limit=1000")["streams"]]
    assert names == sorted(names, key=lambda key: (key.casefold(), key))
    assert [item["key"] for item in read(client, "/streams?sort=name&limit=2&offset=1")["streams"]] == names[1:3]
    key = new()
    post(client, key, 1)
    assert read(client, "/streams?sort=recent&limit=1")["streams"][0]["key"] == key
    only = read(client, "/streams?search=FULL")
    assert [item["key"] for item in only["streams"]] == ["full"]
    assert only["total"] == 1
    assert read(client, "/streams?search=%25")["total"] == sum("%" in key for key in names), "no patterns"


def test_a_stream_in_full(client):
    stored, learner = read(client, "/streams/full"), lp.Detector()
    learner.process(np.array(levels()))
    learner.process(np.array(read(client, "/streams/full/points?after=399")["values"][0]))
    assert stored["estimate"]["means"] == learner.means.tolist()
    assert stored["summary"]
    assert stored["calibration"]
    assert stored["last_alarm"]["message"]
    assert len(stored["sparkline"]) == 60
    young = new()
    post(client, young, 1)
    assert read(client, f"/streams/{young}")["summary"] is None


def test_points_and_history(client):
    key = new()
    post(client, key, levels())
    points = read(client, f"/streams/{key}/points?after=99&limit=50")
    assert points["rows"] == list(range(100, 150))
    assert points["values"][0] == levels()[100:150]
    whole = read(client, f"/streams/{key}/history")
    assert (whole["first_row"], whole["n_rows"], whole["is_downsampled"]) == (0, 400, False)
    assert whole["low"] == whole["high"] == [levels()]
    changes = [row for row, change in enumerate(whole["change"]) if change]
    assert changes
    assert all(whole["estimate"][0][row + after] is not None for row in changes for after in (0, 1))
    few = read(client, f"/streams/{key}/history?buckets=7")
    assert few["is_downsampled"]
    assert len(few["rows"]) <= 7
    assert sum(few["counts"]) == 400
    assert min(few["low"][0]) == min(levels())
    assert sum(few["n_rejected"]) == sum(whole["n_rejected"])
    part = read(client, f"/streams/{key}/history?first=390&last=394")
    assert part["rows"] == list(range(390, 395))
    assert read(client, f"/streams/{key}/history?first=5000")["rows"] == []


def test_alarms_are_acknowledged_and_noted(client):
    key = new()
    raised = post(client, key, levels())["alarms"]
    stored = read(client, f"/alarms?stream={key}")
    assert stored["total"] == len(raised)
    assert stored["alarms"] == raised[::-1]
    first = raised[0]["id"]
    changed = client.patch(f"/alarms/{first}", json={"acknowledged": True, "note": "<b>seen</b>"}).json()
    assert changed["acknowledged_at"]
    assert changed["note"] == "<b>seen</b>"
    again = client.patch(f"/alarms/{first}", json={"acknowledged": True}).json()
    assert again == changed, "the first time stands, the note as well"
    assert [item["id"] for item in read(client, f"/alarms?stream={key}&open=false")["alarms"]] == [first]
    assert read(client, f"/streams/{key}")["open_alarms"] == len(raised) - 1
    assert client.patch(f"/alarms/{first}", json={"acknowledged": False}).json()["acknowledged_at"] is None
    assert client.patch(f"/alarms/{first}", json={"note": "x" * 2001}).status_code == 422
    assert client.patch(f"/alarms/{first}", json={"note": "a\x00"}).status_code == 422
    assert client.patch(f"/alarms/{first}", json={"colour": 1}).status_code == 422
    (older,) = read(client, f"/alarms?stream={key}&before={raised[-1]['id']}&limit=1")["alarms"]
    assert older["id"] == raised[-2]["id"]
    newest = [item["id"] for item in raised[:-3:-1]]
    for last in newest[::-1]:  # the newest that is open; acknowledged, and opened again
        client.patch(f"/alarms/{newest[0]}", json={"acknowledged": last != newest[0]})
        assert read(client, f"/streams/{key}")["last_alarm"]["id"] == last
    assert client.post("/alarms/acknowledge", json={"stream": key}).json() == {"acknowledged": len(raised)}
    assert read(client, f"/streams/{key}")["state"] == "quiet"
    everything = client.post("/alarms/acknowledge", json={}).json()["acknowledged"]
    assert everything > 0
    assert read(client, "/streams")["open_alarms"] == read(client, "/alarms?open=true")["total"] == 0


def test_the_server_describes_itself(client):
    assert read(client, "/health") == {"status": "ok", "version": lp.__version__}
    assert read(client, "/settings")["far"] == lp.Detector().far
    assert read(client, "/sources") == []
    assert read(client, "/session") == {"token_required": False, "ok": True}
    assert client.post("/session", json={"token": "anything"}).json() == {"token_required": False, "ok": True}
    assert client.delete("/session").status_code == 204
    for page in ("/", "/explorer", "/api"):
        assert client.get(page).headers["content-type"] == "text/html; charset=utf-8"


# Results


@settings(max_examples=4)
@given(st.data())
def test_responses_are_those_of_a_learner_however_posts_are_cut_and_mixed(client, data):
    n, names = 330, [new() for _ in range(3)]
    streams = {name: levels(n, seed, 200 + 40 * seed) for seed, name in enumerate(names)}
    done, raised = dict.fromkeys(names, 0), {name: [] for name in names}
    while any(done[name] < n for name in names):
        sizes = {name: data.draw(st.sampled_from([0, 1, 40, 70, 160])) for name in names}
        pieces = {name: streams[name][done[name] : done[name] + size] for name, size in sizes.items()}
        mixed = [{"stream": name, "value": value} for name, part in pieces.items() for value in part]
        if not mixed:
            continue
        if data.draw(st.booleans()):
            mixed.sort(key=lambda point: point["value"] // 3)  # streams alternate
            pieces = {name: [item["value"] for item in mixed if item["stream"] == name] for name in names}
        for result in client.post("/points", json=mixed).json():
            raised[result["stream"]] += result["alarms"]
        for name, part in pieces.items():
            streams[name][done[name] : done[name] + len(part)] = part
            done[name] += len(part)
    live = client.app.state.monitor
    for name in names:
        state, trace = expected(streams[name])
        stored = read(client, f"/streams/{name}/points")
        for column in ("score", "change_score", "p_value"):
            np.testing.assert_array_equal(as_numbers(stored[column]), getattr(trace, column), err_msg=column)
        for column in ("rejected", "anomaly", "change"):
            np.testing.assert_array_equal(stored[column], getattr(trace, column), err_msg=column)
        assert [(item["kind"], item["row"], item["onset"], item["size"]) for item in raised[name]] == [
            (alarm.kind, alarm.row, alarm.onset, alarm.size) for alarm in trace.alarms
        ]
        assert live.processor.models.get(1, live.get_stream(name).entry.id).state.tobytes() == state
        summary = read(client, f"/streams/{name}")
        assert (summary["n_points"], summary["n_rejected"]) == (n, int(trace.rejected.sum()))
