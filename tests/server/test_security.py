"""Authentication, request limits and headers."""

import hmac
import re

import pytest

from helpers.commands import run_in_process
from helpers.monitor import make_sqlite_path, open_client, read_tables
from limpet.server import security
from limpet.server.app import STATIC_DIR
from limpet.server.security import PUBLIC_PATHS, SecurityConfig

TOKEN = "a token of the tests"
PRIVATE_PATHS = [
    "/streams",
    "/alarms",
    "/events",
    "/settings",
    "/sources",
    "/openapi.json",
    "/streams/a/points",
    "/nothing",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server without a token."""
    with open_client(make_sqlite_path(tmp_path_factory.mktemp("open"))) as client:
        yield client


@pytest.fixture
def client_with_token(tmp_path):
    """A server with a token."""
    with open_client(make_sqlite_path(tmp_path), SecurityConfig(TOKEN, max_requests_per_s=1e9)) as client:
        yield client


def assert_error(response, status, code):
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert_headers(response)
    return True


def assert_headers(response):
    for name, value in security.SECURITY_HEADERS.items():
        assert response.headers[name] == value
    assert "cache-control" in response.headers
    assert "server" not in response.headers


# The token


@pytest.mark.parametrize("path", PRIVATE_PATHS)
def test_reads_without_the_token_are_errors(client_with_token, path):
    assert_error(client_with_token.get(path), 401, "unauthorized")
    assert_error(client_with_token.get(path, headers={"Cookie": "limpet=x"}), 401, "unauthorized")
    for authorization in (
        "Bearer wrong",
        f"Basic {TOKEN}",
        "Bearer",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "\xff\xfe",
    ):
        assert client_with_token.get(path, headers={"Authorization": authorization.encode("latin-1")}).status_code in (
            401,
            429,
        )
    assert client_with_token.get(path).headers["www-authenticate"] == "Bearer"


def test_writes_without_the_token_are_errors_and_change_nothing(client_with_token):
    before = read_tables(client_with_token.app.state.monitor.store)
    for method, path, body in [
        ("POST", "/streams/a/points", 1),
        ("POST", "/points", [{"stream": "a", "value": 1}]),
        ("DELETE", "/streams/a", None),
        ("PATCH", "/alarms/1", {"note": "x"}),
        ("POST", "/alarms/acknowledge", {}),
    ]:
        assert_error(client_with_token.request(method, path, json=body), 401, "unauthorized")
    assert read_tables(client_with_token.app.state.monitor.store) == before


def test_requests_with_the_token_succeed(client_with_token):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert client_with_token.post("/streams/a/points", json=1, headers=headers).status_code == 200
    assert client_with_token.get("/streams/a", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200
    assert client_with_token.get("/streams", headers={**headers, "Host": "monitor.example.org"}).status_code == 200


def test_a_page_logs_in_and_out(client_with_token):
    assert client_with_token.get("/session").json() == {"token_required": True, "ok": False}
    for path in PUBLIC_PATHS:
        assert client_with_token.get(path).status_code == 200
    assert_error(client_with_token.post("/session", json={"token": "wrong"}), 401, "unauthorized")
    assert not client_with_token.cookies
    response = client_with_token.post("/session", json={"token": TOKEN})
    assert response.json() == {"token_required": True, "ok": True}
    cookie = response.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert TOKEN not in cookie
    assert client_with_token.get("/session").json() == {"token_required": True, "ok": True}
    assert client_with_token.get("/streams").status_code == 200
    mine = client_with_token.cookies["limpet"]
    among_others = {"Cookie": f'theme={{"a": "b"}}; x; limpet={mine}; y="'}
    client_with_token.cookies.clear()
    assert client_with_token.get("/streams", headers=among_others).status_code == 200
    assert client_with_token.delete("/session").status_code == 204
    assert_error(client_with_token.get("/streams"), 401, "unauthorized")


def test_guesses_of_the_token_are_rate_limited(client_with_token):
    for send in (
        lambda: client_with_token.get("/streams", headers={"Authorization": "Bearer wrong"}),
        lambda: client_with_token.post("/session", json={"token": "wrong"}),
    ):
        responses = [send() for _ in range(15)]
        assert_error(responses[-1], 429, "too_many_requests")
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
    assert compared == [(32, 32)] * 4, "digests, so that not even the length leaks"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.example.org"])
def test_public_host_without_a_token_is_an_error(host, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("LIMPET_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    code, out, error = run_in_process(["serve", "--host", host, "--port", 0], capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert "--host: requires a token" in error
    assert list(tmp_path.iterdir()) == []


def test_short_tokens_are_errors(tmp_path, capsys, monkeypatch):
    (tmp_path / "token").write_text("short\n")
    for name, message in (("token", "at least 16 printable ASCII characters"), ("none", "cannot be read")):
        code, _, error = run_in_process(["serve", "--token-file", tmp_path / name], capsys, monkeypatch)
        assert code == 2
        assert message in " ".join(error.split())


# Browsers


FOREIGN_HOSTS = ["evil.example", "evil.example:8420", "localhost.evil.example", "", "[", "127.0.0.1.evil.example"]
LOCAL_HOSTS = ["localhost", "LOCALHOST:8420", "127.0.0.1:1", "[::1]:8420", "127.0.0.2", "[localhost"]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_foreign_host_names_are_errors(client, host):
    assert_error(client.get("/streams", headers={"Host": host}), 400, "wrong_host")


@pytest.mark.parametrize("host", LOCAL_HOSTS)
def test_local_host_names_are_accepted(client, host):
    assert client.get("/streams", headers={"Host": host}).status_code == 200
    headers = {"Host": host, "Idempotency-Key": "x"}
    assert client.post("/streams/host/points", json=1, headers=headers).status_code == 200
    assert client.post("/session", json={"token": "x"}, headers={"Host": host}).status_code == 200


def test_cross_site_requests_are_errors(client):
    before = read_tables(client.app.state.monitor.store)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        assert_error(client.post("/streams/a/points", json=1, headers=headers), 403, "wrong_origin")
        assert_error(client.delete("/streams/a", headers=headers), 403, "wrong_origin")
    assert_error(client.get("/streams", headers={"Sec-Fetch-Site": "cross-site"}), 403, "wrong_origin")
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status_code == 200
    assert client.post("/streams/part/points", json=1, headers={"Origin": "http://localhost"}).status_code == 200
    client.delete("/streams/part")
    after = read_tables(client.app.state.monitor.store, ("meta",))
    assert after == {name: rows for name, rows in before.items() if name != "meta"}
    assert (
        "access-control-allow-origin" not in client.get("/streams", headers={"Origin": "https://evil.example"}).headers
    )


def test_security_headers_are_on_all_responses(client, monkeypatch):
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


def test_internal_errors_have_no_details(client, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(client.app.state.monitor.processor.registry, "list_streams", fails)
    response = client.get("/streams")
    assert_error(response, 500, "internal")
    assert "secret" not in response.text


def test_requests_are_rate_limited(tmp_path):
    with open_client(make_sqlite_path(tmp_path), SecurityConfig(max_requests_per_s=5)) as client:
        responses = [client.get("/health") for _ in range(15)]
        assert [response.status_code for response in responses[:10]] == [200] * 10
        assert_error(responses[-1], 429, "too_many_requests")
        assert responses[-1].headers["retry-after"] == "1"


# Injections, and other hosts


OUTSIDE_PATHS = ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "....//app.py", "/etc/passwd", "%2fetc%2fpasswd"]
OUTSIDE_PATHS += ["..\\app.py", "vendor/../../app.py", "%00", "vendor", ""]


@pytest.mark.parametrize("path", OUTSIDE_PATHS)
def test_files_outside_the_static_folder_cannot_be_read(client, path):
    response = client.get(f"/static/{path}")
    assert response.status_code in (400, 404)
    assert "import" not in response.text
    assert "root:" not in response.text


SQL_INJECTIONS = [
    "' or 1=1 --",
    "'; drop table points; --",
    '"; delete from streams; --',
    "%",
    "_",
    "\\",
    "a' union select 1 --",
]


@pytest.mark.parametrize("words", SQL_INJECTIONS)
def test_sql_in_parameters_is_not_executed(client, words):
    before = read_tables(client.app.state.monitor.store)
    assert client.get("/streams", params={"search": words}).json()["total"] == 0
    assert client.get("/alarms", params={"stream": words}).status_code == 404
    assert client.get("/alarms", params={"before": words}).status_code == 422
    assert read_tables(client.app.state.monitor.store) == before


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
def test_pages_that_load_external_scripts_do_not_exist(client, path):
    assert_error(client.get(path), 404, "not_found")


def test_names_are_returned_as_json(client):
    name = "<script>alert(1)</script>"
    client.post("/points", json=[{"stream": name, "value": 1}])
    for path in ("/streams", f"/streams/{name}", f"/streams/{name}/points", f"/streams/none{name}"):
        response = client.get(path)
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
