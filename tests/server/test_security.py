"""Authentication, request limits and headers."""

import hmac
import re

import pytest

from helpers.commands import here
from helpers.monitor import client_of, sqlite_at, tables
from limpet.server import security
from limpet.server.app import STATIC_DIR
from limpet.server.security import PUBLIC_PATHS, SecurityConfig

TOKEN = "a token of the tests"
PRIVATE = ["/streams", "/alarms", "/events", "/settings", "/sources", "/openapi.json", "/streams/a/points", "/nothing"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server without a token."""
    with client_of(sqlite_at(tmp_path_factory.mktemp("open"))) as client:
        yield client


@pytest.fixture
def closed(tmp_path):
    """A server with a token."""
    with client_of(sqlite_at(tmp_path), SecurityConfig(TOKEN, max_requests_per_s=1e9)) as client:
        yield client


def refused(response, status, code):
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert_headers(response)
    return True


def assert_headers(response):
    for name, value in security.SECURITY_HEADERS.items():
        assert response.headers[name] == value
    assert "cache-control" in response.headers
    assert "server" not in response.headers


# The token


@pytest.mark.parametrize("path", PRIVATE)
def test_without_the_token_nothing_is_reported(closed, path):
    refused(closed.get(path), 401, "unauthorized")
    refused(closed.get(path, headers={"Cookie": "limpet=x"}), 401, "unauthorized")
    for given in ("Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "\xff\xfe"):
        assert closed.get(path, headers={"Authorization": given.encode("latin-1")}).status_code in (401, 429)
    assert closed.get(path).headers["www-authenticate"] == "Bearer"


def test_without_the_token_nothing_is_done(closed):
    before = tables(closed.app.state.monitor.store)
    for method, path, body in [
        ("POST", "/streams/a/points", 1),
        ("POST", "/points", [{"stream": "a", "value": 1}]),
        ("DELETE", "/streams/a", None),
        ("PATCH", "/alarms/1", {"note": "x"}),
        ("POST", "/alarms/acknowledge", {}),
    ]:
        refused(closed.request(method, path, json=body), 401, "unauthorized")
    assert tables(closed.app.state.monitor.store) == before


def test_with_the_token_everything_is(closed):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert closed.post("/streams/a/points", json=1, headers=headers).status_code == 200
    assert closed.get("/streams/a", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200
    assert closed.get("/streams", headers={**headers, "Host": "monitor.example.org"}).status_code == 200


def test_a_page_logs_in_and_out(closed):
    assert closed.get("/session").json() == {"token_required": True, "ok": False}
    for path in PUBLIC_PATHS:
        assert closed.get(path).status_code == 200
    refused(closed.post("/session", json={"token": "wrong"}), 401, "unauthorized")
    assert not closed.cookies
    response = closed.post("/session", json={"token": TOKEN})
    assert response.json() == {"token_required": True, "ok": True}
    cookie = response.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert TOKEN not in cookie
    assert closed.get("/session").json() == {"token_required": True, "ok": True}
    assert closed.get("/streams").status_code == 200
    mine = closed.cookies["limpet"]
    among_others = {"Cookie": f'theme={{"a": "b"}}; x; limpet={mine}; y="'}
    closed.cookies.clear()
    assert closed.get("/streams", headers=among_others).status_code == 200
    assert closed.delete("/session").status_code == 204
    refused(closed.get("/streams"), 401, "unauthorized")


def test_who_guesses_has_to_wait(closed):
    for send in (
        lambda: closed.get("/streams", headers={"Authorization": "Bearer wrong"}),
        lambda: closed.post("/session", json={"token": "wrong"}),
    ):
        responses = [send() for _ in range(15)]
        refused(responses[-1], 429, "too_many_requests")
        assert int(responses[-1].headers["retry-after"]) > 0


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    compare_digest = hmac.compare_digest

    def record(digest, other):
        compared.append((len(digest), len(other)))
        return compare_digest(digest, other)

    monkeypatch.setattr(hmac, "compare_digest", record)
    rules = SecurityConfig(TOKEN)
    assert [rules.is_token(given) for given in ("", "x" * 1000, TOKEN, "\ud800")] == [False, False, True, False]
    assert compared == [(32, 32)] * 4, "digests, so that not even the length can be result"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.example.org"])
def test_others_may_not_reach_it_without_a_token(host, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("LIMPET_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    code, out, error = here(["serve", "--host", host, "--port", 0], capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert "--host: requires a token" in error
    assert list(tmp_path.iterdir()) == []


def test_it_refuses_short_tokens(tmp_path, capsys, monkeypatch):
    (tmp_path / "token").write_text("short\n")
    for name, why in (("token", "at least 16 printable ASCII characters"), ("none", "cannot be read")):
        code, _, error = here(["serve", "--token-file", tmp_path / name], capsys, monkeypatch)
        assert code == 2
        assert why in " ".join(error.split())


# Browsers


NAMES_OF_OTHERS = ["evil.example", "evil.example:8420", "localhost.evil.example", "", "[", "127.0.0.1.evil.example"]
OWN_NAMES = ["localhost", "LOCALHOST:8420", "127.0.0.1:1", "[::1]:8420", "127.0.0.2", "[localhost"]


@pytest.mark.parametrize("host", NAMES_OF_OTHERS)
def test_other_names_are_not_acknowledged_to(client, host):
    refused(client.get("/streams", headers={"Host": host}), 400, "wrong_host")


@pytest.mark.parametrize("host", OWN_NAMES)
def test_names_of_this_machine_are(client, host):
    assert client.get("/streams", headers={"Host": host}).status_code == 200
    headers = {"Host": host, "Idempotency-Key": "x"}
    assert client.post("/streams/host/points", json=1, headers=headers).status_code == 200
    assert client.post("/session", json={"token": "x"}, headers={"Host": host}).status_code == 200


def test_other_sites_are_refused(client):
    before = tables(client.app.state.monitor.store)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        refused(client.post("/streams/a/points", json=1, headers=headers), 403, "wrong_origin")
        refused(client.delete("/streams/a", headers=headers), 403, "wrong_origin")
    refused(client.get("/streams", headers={"Sec-Fetch-Site": "cross-site"}), 403, "wrong_origin")
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status_code == 200
    assert client.post("/streams/part/points", json=1, headers={"Origin": "http://localhost"}).status_code == 200
    client.delete("/streams/part")
    after = tables(client.app.state.monitor.store, ("meta",))
    assert after == {name: rows for name, rows in before.items() if name != "meta"}
    assert (
        "access-control-allow-origin" not in client.get("/streams", headers={"Origin": "https://evil.example"}).headers
    )


def test_headers_are_on_everything(client, monkeypatch):
    for method, path in [
        *(
            ("GET", path)
            for path in (*PUBLIC_PATHS, "/streams", "/openapi.json", "/static/base.css", "/static/common/dom.js")
        ),
        *(("GET", path) for path in ("/nothing", "/static/nothing", "/streams/none", "/streams?limit=x")),
        ("PUT", "/streams"),
        ("POST", "/points"),
        ("OPTIONS", "/streams"),
    ]:
        assert_headers(client.request(method, path))


def test_what_goes_wrong_here_is_reported_without_details(client, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(client.app.state.monitor.processor.registry, "list_streams", fails)
    response = client.get("/streams")
    refused(response, 500, "internal")
    assert "secret" not in response.text


def test_how_often(tmp_path):
    with client_of(sqlite_at(tmp_path), SecurityConfig(max_requests_per_s=5)) as client:
        responses = [client.get("/health") for _ in range(15)]
        assert [response.status_code for response in responses[:10]] == [200] * 10
        refused(responses[-1], 429, "too_many_requests")
        assert responses[-1].headers["retry-after"] == "1"


# Injections, and other hosts


OUTSIDE = ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "....//app.py", "/etc/passwd", "%2fetc%2fpasswd"]
OUTSIDE += ["..\\app.py", "vendor/../../app.py", "%00", "vendor", ""]


@pytest.mark.parametrize("path", OUTSIDE)
def test_files_of_others_cannot_be_read(client, path):
    response = client.get(f"/static/{path}")
    assert response.status_code in (400, 404)
    assert "import" not in response.text
    assert "root:" not in response.text


SQL = ["' or 1=1 --", "'; drop table points; --", '"; delete from streams; --', "%", "_", "\\", "a' union select 1 --"]


@pytest.mark.parametrize("words", SQL)
def test_sql_is_just_text(client, words):
    before = tables(client.app.state.monitor.store)
    assert client.get("/streams", params={"search": words}).json()["total"] == 0
    assert client.get("/alarms", params={"stream": words}).status_code == 404
    assert client.get("/alarms", params={"before": words}).status_code == 422
    assert tables(client.app.state.monitor.store) == before


def test_nothing_is_loaded_from_other_hosts(client):
    named = "http://www.w3.org/"  # names of XML, which are never fetched
    for path in STATIC_DIR.rglob("*"):
        if path.suffix not in (".html", ".css", ".js", ".svg"):
            continue
        text = path.read_text(encoding="utf-8").replace(named, "")
        if "vendor" not in path.parts:
            assert not re.findall(r"https?://|[\"'(]//", text), path
        loaded = re.findall(r"(?:src|href|url|import|from|fetch)\s*[=(]?\s*[\"'(]?(?:https?:)?//[^\s\"')]+", text)
        assert not loaded, path
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text), path
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not re.search(r"unsafe|https?:|\*", policy)


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/docs/oauth2-redirect"])
def test_no_pages_that_load_scripts_from_elsewhere(client, path):
    refused(client.get(path), 404, "not_found")


def test_names_are_reported_as_text(client):
    name = "<script>alert(1)</script>"
    client.post("/points", json=[{"stream": name, "value": 1}])
    for path in ("/streams", f"/streams/{name}", f"/streams/{name}/points", f"/streams/none{name}"):
        response = client.get(path)
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
