"""All paths of the API, and all of its errors."""

import json
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from helpers.monitor import get_expected, make_levels, make_sqlite_path, open_client, read_tables
from limpet.server.db.engine import STORE_FORMAT
from limpet.server.routes.points import MAX_REQUEST_POINTS
from limpet.server.security import SecurityConfig

KEY_NUMBERS = iter(range(10**9))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with open_client(
        make_sqlite_path(tmp_path_factory.mktemp("api")),
        SecurityConfig(max_requests_per_s=1e9, max_body_mb=1.0),
        max_streams=1000,
    ) as client:
        client.post("/streams/full/points", json=make_levels())
        client.post("/streams/timed/points", json={"value": 1, "time": 100})
        client.post("/streams/dated/points", json={"values": {"a": 1, "b": 2}, "time": "2026-01-02T03:04:05Z"})
        yield client


def make_key():
    """A key that is not in use."""
    return f"stream {next(KEY_NUMBERS)}"


def post(client, key, content, **headers):
    response = client.post(f"/streams/{key}/points", json=content, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def get_json(client, path):
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def to_floats(column):
    return np.array(column, np.float64)  # null is NaN


# Valid requests


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
def test_points_of_all_input_forms(client, content, values):
    key = make_key()
    result = post(client, key, content)
    n = len(values[0])
    assert (result["stream"], result["accepted"], result["first_row"], result["last_row"]) == (key, n, 0, n - 1)
    stored = get_json(client, f"/streams/{key}/points")
    assert stored["values"] == values
    assert stored["rows"] == list(range(n))
    assert str(stored["values"][0][-1]) == str(values[0][-1]) or values[0][-1] is None, "zeros keep their sign"


def test_variables_in_any_order(client):
    post(client, "dated", {"values": {"b": 20}, "time": "2026-01-02T03:04:06Z"})
    post(client, "dated", {"values": {"b": 30, "a": 10}})
    post(client, "dated", [[7, 8]])
    stored = get_json(client, "/streams/dated/points")
    assert stored["values"] == [[1, None, 10, 7], [2, 20, 30, 8]]
    assert stored["times"][:2] == ["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]
    assert get_json(client, "/streams/dated")["variables"] == ["a", "b"]


VALID_KEYS = ["a b", "pump/1/flow", "ünï/コード", "100%", "a?b#c&d=e", "points", "a+b", "'; drop table points; --"]
VALID_KEYS += ["<script>alert(1)</script>", "\\..\\", "..a", "🦫", "x" * 200]


@pytest.mark.parametrize("key", VALID_KEYS)
def test_strings_of_all_kinds_are_keys(client, key):
    assert (
        client.post("/points", json=[{"stream": key, "value": 1}, {"stream": key, "value": 2}]).json()[0]["accepted"]
        == 2
    )
    path = f"/streams/{quote(key, safe='')}"
    assert get_json(client, path)["key"] == key
    assert get_json(client, f"{path}/points")["values"] == [[1.0, 2.0]]
    assert get_json(client, f"{path}/history")["counts"] == [1, 1]
    assert get_json(client, f"/streams?search={quote(key)}&limit=5")["streams"][0]["key"] == key
    assert get_json(client, f"/alarms?stream={quote(key)}")["total"] == 0
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_late_and_duplicate_points_are_skipped(client):
    key = make_key()
    post(client, key, {"value": 0, "time": 1.5e-05})
    result = post(client, key, [{"value": i, "time": time} for i, time in enumerate([10, 20, 15, 20, 21, 21])])
    assert (result["accepted"], result["skipped"]) == (5, {"late": 1, "duplicate": 0})
    assert post(client, key, {"value": 5, "time": 21})["skipped"] == {"late": 0, "duplicate": 1}
    again = post(client, key, {"value": 5, "time": 21.0})
    assert (again["accepted"], again["first_row"], again["last_row"]) == (0, None, None)
    assert get_json(client, f"/streams/{key}/points")["times"] == [1.5e-05, 10, 20, 20, 21, 21]


def test_request_with_an_idempotency_key_is_learned_once(client):
    key, headers = make_key(), {"Idempotency-Key": "a1"}
    first = client.post(f"/streams/{key}/points", json=make_levels(), headers=headers)
    second = client.post(f"/streams/{key}/points", json=make_levels(), headers=headers)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert first.json()["alarms"]
    assert get_json(client, f"/streams/{key}")["n_points"] == 400
    other = client.post(f"/streams/{key}/points", json=[1.0], headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert post(client, make_key(), [1.0], **headers)["accepted"] == 1, "a name counts for one address"
    many = [client.post("/points", json=[{"stream": key, "value": 1}], headers=headers).json() for _ in range(2)]
    assert many[0] == many[1]
    assert get_json(client, f"/streams/{key}")["n_points"] == 401


# Errors

WRONG_BODIES = {
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
WRONG_BODIES_BY_STREAM = {
    "full": {b"[[1, 2]]": "dimension_mismatch", b'{"values": {"a": 1}}': "unknown_variable"},
    "timed": {b'{"value": 1, "time": "2026-01-01"}': "invalid_time"},
    "dated": {
        b"[[1, 2, 3]]": "dimension_mismatch",
        b'{"values": {"c": 1}}': "unknown_variable",
        b'{"values": {"a": 1}, "time": 5}': "invalid_time",
        b'{"values": {"a": null}}': "invalid_point",
    },
}
CASES = [("new", body, code) for body, code in WRONG_BODIES.items()]
CASES += [(key, body, code) for key, part in WRONG_BODIES_BY_STREAM.items() for body, code in part.items()]


@pytest.mark.parametrize(("key", "body", "code"), CASES, ids=[f"{key} {body[:40]!r}" for key, body, _ in CASES])
def test_wrong_requests_are_errors_and_change_nothing(client, key, body, code):
    registry = client.app.state.monitor.processor.registry
    before, known = registry.list_streams("", "name", 0, 1000), registry.by_key.get(key)
    n_points = None if known is None else known.n_points
    response = client.post(f"/streams/{key}/points", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= response.status_code < 500
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["message"]
    assert registry.list_streams("", "name", 0, 1000) == before
    assert n_points == (None if known is None else known.n_points)


def test_wrong_requests_store_nothing(client):
    store = client.app.state.monitor.store
    before = read_tables(store)
    valid, json_type = {"stream": make_key(), "value": 1}, {"Content-Type": "application/json"}
    for key, body, _ in CASES:
        client.post(f"/streams/{key}/points", content=body, headers={**json_type, "Idempotency-Key": "x"})
    for wrong in (
        {"stream": "full", "value": "x"},
        {"value": 1},
        1.5,
        {"stream": 7, "value": 1},
        {"stream": "full", "values": [1, 2]},
    ):
        response = client.post("/points", json=[valid, wrong])
        assert response.status_code == 422, "all of a post, or nothing"
    assert read_tables(store) == before


INVALID_KEYS = [
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


@pytest.mark.parametrize("key", INVALID_KEYS)
def test_invalid_keys_are_errors(client, key):
    n_streams = len(client.app.state.monitor.processor.registry.by_key)
    response = client.post("/points", json=[{"stream": key, "value": 1}])
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_key")
    assert len(client.app.state.monitor.processor.registry.by_key) == n_streams


@pytest.mark.parametrize("path", ["a%00b", "x" * 201, "a%2F..%2Fb", "a%2Fpoints", "%2e%2e", "a%C2%85", "%ff%0d"])
def test_invalid_keys_in_paths_are_errors(client, path):
    response = client.post(f"/streams/{path}/points", json=1)
    assert response.status_code in (404, 405, 422)
    for method in ("get", "delete"):
        assert getattr(client, method)(f"/streams/{path}").status_code in (404, 405)


def test_surrogates_are_errors(client):
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


def test_too_large_requests_are_errors(client):
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


def test_too_many_streams_are_an_error(client):
    monitor = client.app.state.monitor
    max_streams, n = monitor.processor.max_streams, len(monitor.processor.registry.by_key)
    monitor.processor.max_streams = n + 1
    try:
        two = client.post("/points", json=[{"stream": make_key(), "value": 1}, {"stream": make_key(), "value": 1}])
        assert (two.status_code, two.json()["error"]["code"]) == (429, "too_many_streams")
        assert len(monitor.processor.registry.by_key) == n
        post(client, make_key(), 1)
        assert client.post(f"/streams/{make_key()}/points", json=1).status_code == 429
        post(client, "full", 20)
    finally:
        monitor.processor.max_streams = max_streams


def test_wrong_content_types_and_idempotency_keys_are_errors(client):
    response = client.post("/streams/a/points", content=b"1", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_media_type")
    for name in ("a b", "x" * 201, "é".encode(), ""):
        response = client.post("/streams/a/points", json=1, headers={"Idempotency-Key": name})
        assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid")
    assert client.get("/streams/a").status_code == 404


UNKNOWN_PATHS = [
    "/streams/none",
    "/streams/none/points",
    "/streams/none/history",
    "/streams/none/events",
    "/alarms?stream=none",
]


@pytest.mark.parametrize("path", UNKNOWN_PATHS)
def test_unknown_streams_are_errors(client, path):
    response = client.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_stream")


def test_unknown_paths_and_parameters_are_errors(client):
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


def test_list_of_streams(client):
    stored = get_json(client, "/streams?limit=3")
    assert stored["streams"][0]["state"] == "alarming"
    assert len(stored["streams"]) == 3
    assert stored["n_alarming"] >= 1
    names = [item["key"] for item in get_json(client, "/streams?sort=name&limit=1000")["streams"]]
    assert names == sorted(names, key=lambda key: (key.casefold(), key))
    assert [item["key"] for item in get_json(client, "/streams?sort=name&limit=2&offset=1")["streams"]] == names[1:3]
    key = make_key()
    post(client, key, 1)
    assert get_json(client, "/streams?sort=recent&limit=1")["streams"][0]["key"] == key
    only = get_json(client, "/streams?search=FULL")
    assert [item["key"] for item in only["streams"]] == ["full"]
    assert only["total"] == 1
    assert get_json(client, "/streams?search=%25")["total"] == sum("%" in key for key in names), "no patterns"


def test_details_of_a_stream(client):
    stored, learner = get_json(client, "/streams/full"), lp.Detector()
    learner.process(np.array(make_levels()))
    learner.process(np.array(get_json(client, "/streams/full/points?after=399")["values"][0]))
    assert stored["estimate"]["means"] == learner.means.tolist()
    assert stored["summary"]
    assert stored["fitted_params"]
    assert stored["last_alarm"]["message"]
    assert len(stored["sparkline"]) == 60
    new_key = make_key()
    post(client, new_key, 1)
    assert get_json(client, f"/streams/{new_key}")["summary"] is None


def test_points_and_history(client):
    key = make_key()
    post(client, key, make_levels())
    points = get_json(client, f"/streams/{key}/points?after=99&limit=50")
    assert points["rows"] == list(range(100, 150))
    assert points["values"][0] == make_levels()[100:150]
    whole = get_json(client, f"/streams/{key}/history")
    assert (whole["first_row"], whole["n_rows"], whole["is_downsampled"]) == (0, 400, False)
    assert whole["low"] == whole["high"] == [make_levels()]
    changes = [row for row, change in enumerate(whole["change"]) if change]
    assert changes
    assert all(whole["estimate"][0][row + after] is not None for row in changes for after in (0, 1))
    downsampled = get_json(client, f"/streams/{key}/history?buckets=7")
    assert downsampled["is_downsampled"]
    assert len(downsampled["rows"]) <= 7
    assert sum(downsampled["counts"]) == 400
    assert min(downsampled["low"][0]) == min(make_levels())
    assert sum(downsampled["n_rejected"]) == sum(whole["n_rejected"])
    part = get_json(client, f"/streams/{key}/history?first=390&last=394")
    assert part["rows"] == list(range(390, 395))
    assert get_json(client, f"/streams/{key}/history?first=5000")["rows"] == []


def test_alarms_are_acknowledged_and_annotated(client):
    key = make_key()
    raised = post(client, key, make_levels())["alarms"]
    stored = get_json(client, f"/alarms?stream={key}")
    assert stored["total"] == len(raised)
    assert stored["alarms"] == raised[::-1]
    first = raised[0]["id"]
    changed = client.patch(f"/alarms/{first}", json={"acknowledged": True, "note": "<b>seen</b>"}).json()
    assert changed["acknowledged_at"]
    assert changed["note"] == "<b>seen</b>"
    again = client.patch(f"/alarms/{first}", json={"acknowledged": True}).json()
    assert again == changed, "the first time stands, the note as well"
    assert [item["id"] for item in get_json(client, f"/alarms?stream={key}&open=false")["alarms"]] == [first]
    assert get_json(client, f"/streams/{key}")["open_alarms"] == len(raised) - 1
    assert client.patch(f"/alarms/{first}", json={"acknowledged": False}).json()["acknowledged_at"] is None
    assert client.patch(f"/alarms/{first}", json={"note": "x" * 2001}).status_code == 422
    assert client.patch(f"/alarms/{first}", json={"note": "a\x00"}).status_code == 422
    assert client.patch(f"/alarms/{first}", json={"colour": 1}).status_code == 422
    (older,) = get_json(client, f"/alarms?stream={key}&before={raised[-1]['id']}&limit=1")["alarms"]
    assert older["id"] == raised[-2]["id"]
    newest = [item["id"] for item in raised[:-3:-1]]
    for last in newest[::-1]:  # the newest that is open; acknowledged, and opened again
        client.patch(f"/alarms/{newest[0]}", json={"acknowledged": last != newest[0]})
        assert get_json(client, f"/streams/{key}")["last_alarm"]["id"] == last
    assert client.post("/alarms/acknowledge", json={"stream": key}).json() == {"acknowledged": len(raised)}
    assert get_json(client, f"/streams/{key}")["state"] == "quiet"
    everything = client.post("/alarms/acknowledge", json={}).json()["acknowledged"]
    assert everything > 0
    assert get_json(client, "/streams")["open_alarms"] == get_json(client, "/alarms?open=true")["total"] == 0


def test_health_settings_and_session(client):
    assert get_json(client, "/health") == {"status": "ok", "version": lp.__version__}
    assert get_json(client, "/settings")["far"] == lp.Detector().far
    assert get_json(client, "/sources") == []
    assert get_json(client, "/session") == {"token_required": False, "ok": True}
    assert client.post("/session", json={"token": "anything"}).json() == {"token_required": False, "ok": True}
    assert client.delete("/session").status_code == 204
    for page in ("/", "/explorer", "/api"):
        assert client.get(page).headers["content-type"] == "text/html; charset=utf-8"


# Results


@settings(max_examples=4)
@given(st.data())
def test_responses_equal_a_learner_for_any_split_of_requests(client, data):
    n, names = 330, [make_key() for _ in range(3)]
    streams = {name: make_levels(n, seed, 200 + 40 * seed) for seed, name in enumerate(names)}
    n_posted, raised = dict.fromkeys(names, 0), {name: [] for name in names}
    while any(n_posted[name] < n for name in names):
        sizes = {name: data.draw(st.sampled_from([0, 1, 40, 70, 160])) for name in names}
        parts = {name: streams[name][n_posted[name] : n_posted[name] + size] for name, size in sizes.items()}
        mixed = [{"stream": name, "value": value} for name, part in parts.items() for value in part]
        if not mixed:
            continue
        if data.draw(st.booleans()):
            mixed.sort(key=lambda point: point["value"] // 3)  # streams alternate
            parts = {name: [item["value"] for item in mixed if item["stream"] == name] for name in names}
        for result in client.post("/points", json=mixed).json():
            raised[result["stream"]] += result["alarms"]
        for name, part in parts.items():
            streams[name][n_posted[name] : n_posted[name] + len(part)] = part
            n_posted[name] += len(part)
    monitor = client.app.state.monitor
    for name in names:
        state, trace = get_expected(streams[name])
        stored = get_json(client, f"/streams/{name}/points")
        for column in ("score", "change_score", "p_value"):
            np.testing.assert_array_equal(to_floats(stored[column]), getattr(trace, column), err_msg=column)
        for column in ("rejected", "anomaly", "change"):
            np.testing.assert_array_equal(stored[column], getattr(trace, column), err_msg=column)
        assert [(item["kind"], item["row"], item["onset"], item["size"]) for item in raised[name]] == [
            (alarm.kind, alarm.row, alarm.onset, alarm.size) for alarm in trace.alarms
        ]
        assert monitor.processor.learners.get(1, monitor.get_stream(name).entry.id).state.tobytes() == state
        summary = get_json(client, f"/streams/{name}")
        assert (summary["n_points"], summary["n_rejected"]) == (n, int(trace.rejected.sum()))
