"""The live monitor, the login and the page of the API, in a real browser on a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from helpers.pages import CHROMIUM, ServerProcess, open_browser, open_page, wait_until

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

TOKEN = "a token of the tests"
HTML_KEYS = ("<img src=x onerror=window.hit=1>", "<script>window.hit=1</script>", "a/b & c?d#e%f")
CHART_DATA_JS = "() => limpet.monitor.stream?.charts?.charts['data 0']?.data"
HAS_ROWS_JS = "(n) => limpet.monitor.stream?.charts?.charts['data 0']?.data[0]?.length === n"


@pytest.fixture(scope="module")
def server_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all, with all that it compiles compiled."""
    server = ServerProcess(tmp_path_factory.mktemp("served"))
    server.post("warm", make_level(0.0, 200, seed=0) + make_level(9.0, 60, seed=1))
    server.call("DELETE", "/streams/warm")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose console has no errors."""
    with open_page(browser) as page:
        yield page


def make_level(mean: float, n: int, seed: int) -> list[float]:
    """Make noise around a level."""
    return [round(float(x), 6) for x in np.random.default_rng(seed).normal(mean, 1.0, n)]


def get_stream_url(server_process: ServerProcess, key: str) -> str:
    """Return the URL of the page of a stream."""
    return f"{server_process.url}/#stream={quote(key, safe='')}"


def get_chart(page: Page, n: int) -> tuple[list[int], list[float]]:
    """Return rows and values of the chart once it has n."""
    wait_until(page, HAS_ROWS_JS, n)
    rows, values = page.evaluate(CHART_DATA_JS)[:2]
    return rows, values


def test_new_stream_and_its_alarm_are_shown(server_process: ServerProcess, page: Page) -> None:
    """From the empty page to an alarm that a user acknowledges and notes, which a restart keeps."""
    page.goto(server_process.url)
    expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
    server_process.post("boiler", make_level(20.0, 400, seed=2))
    row = page.locator(".stream", has_text="boiler")
    expect(row).to_be_visible()
    assert page.title() == "Monitor · limpet"

    shifted = server_process.post("boiler", make_level(30.0, 60, seed=3))
    responded = time.monotonic()
    change = next(alarm for alarm in shifted["alarms"] if alarm["kind"] == "change")
    card = page.locator(f".overview .alarm[data-id='{change['id']}']")
    expect(card.locator(".badge.change")).to_be_visible()
    assert time.monotonic() - responded < 2.0
    expect(card.locator(".message")).to_have_text(change["message"])
    expect(page.locator("#toasts")).to_contain_text("boiler")
    expect(row.locator(".mark.alarming")).to_be_visible()
    expect(page).to_have_title(f"({len(shifted['alarms'])}) Monitor · limpet")

    card.get_by_role("button", name="Add note").click()
    page.get_by_role("textbox", name="Note").fill("The <b>valve</b> was opened.")
    page.keyboard.press("Enter")
    expect(card.locator(".noted")).to_have_text("The <b>valve</b> was opened.")
    card.get_by_role("button", name="Acknowledge").click()
    expect(card.get_by_role("button", name="Reopen")).to_be_visible()

    server_process.stop()
    server_process.start()
    page.goto(get_stream_url(server_process, "boiler"))
    page.reload()
    kept = page.locator(".whole .alarm", has_text="valve")
    expect(kept).to_contain_text("acknowledged")
    expect(kept.locator(".message")).to_have_text(change["message"])


def test_the_chart_resumes_after_a_lost_connection(server_process: ServerProcess, page: Page) -> None:
    """Without missing or duplicate rows, although points were stored before the page reconnected."""
    posted = make_level(0.0, 150, seed=4)
    server_process.post("live", posted)
    page.goto(get_stream_url(server_process, "live"))
    get_chart(page, len(posted))
    for seed in (5, 6):
        more = make_level(0.0, 7, seed)
        server_process.post("live", more)
        posted += more
    get_chart(page, len(posted))

    server_process.stop()
    expect(page.locator(".live")).to_have_text("reconnecting…")
    server_process.start()
    more = make_level(0.0, 90, seed=7)
    server_process.post("live", more)
    posted += more
    rows, values = get_chart(page, len(posted))
    expect(page.locator(".live")).to_have_text("live")
    assert rows == list(range(len(posted)))
    assert values == posted

    n_drawn_js = """async () => { const view = limpet.monitor.stream; view.loader.onChange(); view.pause.click();
        const draw = view.charts.draw; let n = 0; view.charts.draw = () => { n += 1; };
        await new Promise(resolve => setTimeout(resolve, 1000)); view.charts.draw = draw; return n }"""
    assert page.evaluate(n_drawn_js) == 0  # of what was scheduled before the pause
    server_process.post("live", [0.5])
    wait_until(page, "(n) => limpet.monitor.stream.loader.buffer.nextRow === n", len(posted) + 1)
    assert len(page.evaluate(CHART_DATA_JS)[0]) == len(posted)
    page.get_by_role("button", name="Resume").click()
    assert get_chart(page, len(posted) + 1)[1] == [*posted, 0.5]


def test_changes_by_other_clients_are_shown(server_process: ServerProcess, page: Page) -> None:
    """Alarms acknowledged and streams deleted by other clients."""
    server_process.post("pump", make_level(0.0, 400, seed=8) + make_level(12.0, 60, seed=9))
    posted_alarms = server_process.call("GET", "/alarms?stream=pump")["alarms"]
    page.goto(get_stream_url(server_process, "pump"))
    expect(page.locator(".whole .alarm .badge.change").first).to_be_visible()
    server_process.call("PATCH", f"/alarms/{posted_alarms[0]['id']}", {"acknowledged": True, "note": "seen elsewhere"})
    expect(page.locator(f".whole .alarm[data-id='{posted_alarms[0]['id']}']")).to_contain_text("seen elsewhere")
    server_process.call("POST", "/alarms/acknowledge", {"stream": "pump"})
    expect(page.locator(".whole .badge.change, .whole .badge.anomaly")).to_have_count(0)
    server_process.call("DELETE", "/streams/pump")
    expect(page.locator(".whole")).to_contain_text("This stream does not exist")
    server_process.post("pump", [1.0, 2.0])
    assert get_chart(page, 2)[1] == [1.0, 2.0]


@pytest.mark.parametrize("key", HTML_KEYS)
def test_html_in_names_is_not_executed(server_process: ServerProcess, page: Page, key: str) -> None:
    """HTML in the name of a stream is neither executed nor followed."""
    server_process.post(key, make_level(0.0, 400, seed=10) + make_level(15.0, 60, seed=11))
    page.goto(server_process.url)
    page.locator(".stream").filter(has=page.get_by_text(key, exact=True)).click()
    expect(page.locator(".whole h1")).to_have_text(key)
    assert len(get_chart(page, 460)[0]) == 460
    expect(page.locator(".whole pre", has_text="curl")).to_contain_text(quote(key, safe=""))
    page.go_back()
    expect(page.locator(".overview .of", has_text=key).first).to_be_visible()
    assert page.evaluate("window.hit") is None
    server_process.call("DELETE", f"/streams/{quote(key, safe='')}")


def test_page_is_usable_by_keyboard(server_process: ServerProcess, page: Page) -> None:
    """Search, choose, open, go back."""
    for key in ("keys/a", "keys/b", "keys/c"):
        server_process.post(key, [1.0])
    page.goto(server_process.url)
    page.locator(".stream .name").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("KEYS")
    wait_until(page, "() => limpet.monitor.streams.total === 3")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".whole h1")).to_have_text("keys/b")
    page.keyboard.press("Escape")
    expect(page.locator(".whole")).to_have_count(0)
    expect(page.locator(".stream", has_text="keys/b")).to_be_focused()


def test_the_variable_that_alarms_is_shown(server_process: ServerProcess, page: Page) -> None:
    """Of many; a click on its alarm shows where that was. Of a single point no plural is used."""
    values = np.random.default_rng(12).normal(size=(700, 6))
    values[200:, 4] += 10.0
    posted = [{"values": dict(zip("abcdef", row, strict=True))} for row in values.tolist()]
    posted_alarms = server_process.post("wide", posted)["alarms"]
    change = next(alarm for alarm in posted_alarms if alarm["kind"] == "change")
    assert change["variables"] == ["e"]
    page.goto(get_stream_url(server_process, "wide"))
    expect(page.locator(".chart-title").first).to_contain_text("e")
    expect(page.locator(".whole .facts dt").first).to_have_text("e")
    row = page.locator(".stream", has_text="wide")
    expect(row.locator(".variable")).to_have_text("a")
    expect(row.locator(".others")).to_have_text("and 5 more")
    assert wait_until(page, "() => limpet.monitor.stream.charts.charts['data 4']?.data[0][0]") == 200
    page.locator(f".whole .alarm[data-id='{change['id']}'] .message").click()
    expect(page.get_by_role("button", name="Last 2,000")).to_have_attribute("aria-pressed", "true")
    scale = "() => { const { min, max } = limpet.monitor.stream.charts.charts['data 4'].scales.x; return [min, max]; }"
    expect(page.get_by_role("button", name="Zoom out")).to_be_visible()
    first, last = page.evaluate(scale)
    assert first < change["onset"] <= change["row"] < last < first + 200
    page.get_by_role("button", name="Zoom out").click()
    assert page.evaluate(scale) == [0, 699]
    server_process.post("single", [1.0])
    expect(page.locator(".stream", has_text="single")).to_contain_text("1 point ·")


TIMES_JS = """async (times) => {
  const [{ readableTime }, { getTimezoneLabel }] = await Promise.all(
    ["axis", "timezone"].map((name) => import(`/static/charts/${name}.js`)),
  );
  return times.map((time) => [readableTime(time), getTimezoneLabel([time])]);
}"""


def test_times_with_a_zone_are_shown_in_utc(server_process: ServerProcess, page: Page) -> None:
    """All alike; times without one as they are."""
    page.goto(server_process.url)
    times = ["2026-01-01T00:30:05.250+01:00", "2025-12-31T23:30:05.250Z", "2025-12-31 23:30:05.25", 7, "noon"]
    assert page.evaluate(TIMES_JS, times) == [
        ["2025-12-31 23:30:05.250", "UTC"],
        ["2025-12-31 23:30:05.250", "UTC"],
        ["2025-12-31 23:30:05.25", ""],
        ["7", ""],
        ["noon", ""],
    ]


def test_list_of_thousands_of_streams_renders_few_rows(server_process: ServerProcess, page: Page) -> None:
    """The list scrolls to the last of 5,000 with few rows in the document."""
    keys = [f"many-{i:04d}" for i in range(5000)]
    server_process.call("POST", "/points", [{"stream": key, "value": 1.0} for key in keys])
    page.goto(server_process.url)
    page.get_by_label("Order").select_option("name")
    page.get_by_label("Search streams").fill("many-")
    wait_until(page, "() => limpet.monitor.streams.total === 5000")
    page.locator(".scroller").evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
    last = page.locator("[aria-posinset='5000']")
    expect(last.locator(".name")).to_have_text(keys[-1])
    expect(last).to_be_in_viewport()
    assert page.locator(".slot").count() < 60
    server_process.post(keys[-1], [3.25])
    expect(last.locator(".value")).to_have_text("3.25")


BUFFER_JS = """async () => {
  const { PointBuffer } = await import("/static/monitor/point_buffer.js");
  const chunk = (first, last) => {
    const rows = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    const [none, zero, rejected] = [rows.map(() => null), rows.map(() => 0), rows.map((row) => Number(row === 3))];
    const values = [rows.map((row) => row * 10)];
    const quiet = { times: none, estimate: [none], score: rows, p_value: rows, anomaly: zero, change: zero };
    return { rows, values, rejected, ...quiet };
  };
  const buffer = new PointBuffer(1);
  const missing = [chunk(0, 4), chunk(2, 6), chunk(9, 11)].map((one) => buffer.append(one));
  const before = buffer.rows.slice();
  buffer.append(chunk(5, 8));
  buffer.append(chunk(9, 11));
  const short = new PointBuffer(1, { span: 5 });
  short.append(chunk(0, 20));
  const merged = new PointBuffer(1, { maxBuckets: 10 });
  for (let i = 0; i < 50; i++) merged.append(chunk(i, i));
  const [{ rows, high: [values] }, rejected] = [buffer, buffer.rejectedValues(0)];
  const even = merged.rebucket(5);
  return { missing, before, rows, values, rejected, short: short.rows, merged, even };
}"""


def test_buffer_has_no_missing_and_no_duplicate_rows(server_process: ServerProcess, page: Page) -> None:
    """The module alone: overlapping chunks, missing rows that are fetched, a span, merged buckets."""
    page.goto(server_process.url)
    got: dict[str, Any] = page.evaluate(BUFFER_JS)
    assert got["missing"] == [None, None, 7]
    assert got["before"] == list(range(7))
    assert got["rows"] == list(range(12))
    assert got["values"] == [10 * row for row in range(12)]
    assert got["rejected"] == [30 if row == 3 else None for row in range(12)]
    assert got["short"] == [16, 17, 18, 19, 20]
    for merged in (got["merged"], got["even"]):
        ends = np.cumsum(merged["counts"]).tolist()
        assert len(ends) <= 10
        assert ends[-1] == merged["nextRow"] == 50
        assert merged["rows"] == [0, *ends[:-1]]
        assert merged["low"][0] == [10 * row for row in merged["rows"]]
        assert merged["high"][0] == [10 * (end - 1) for end in ends]
        assert sum(merged["n_rejected"]) == 1
    assert min(got["even"]["counts"][:-1]) >= 5 > min(got["merged"]["counts"][:-1])


def test_api_page_lists_and_sends_requests(server_process: ServerProcess, page: Page) -> None:
    """Every endpoint of the document is on the page; a GET can be sent."""
    paths = server_process.call("GET", "/openapi.json")["paths"]
    methods = ("get", "post", "put", "patch", "delete")
    n_endpoints = sum(method in methods for operations in paths.values() for method in operations)
    page.goto(f"{server_process.url}/api")
    expect(page.locator(".opblock")).to_have_count(n_endpoints)
    health = page.locator(".opblock", has_text="/health")
    health.locator(".opblock-summary-control").click()
    health.get_by_role("button", name="Try it out").click()
    health.get_by_role("button", name="Execute").click()
    expect(health.locator(".live-responses-table")).to_contain_text('"status": "ok"')


@pytest.mark.parametrize("size", [(1400, 900), (360, 740)])
def test_pages_fit_the_screen(server_process: ServerProcess, browser: Browser, size: tuple[int, int]) -> None:
    """No page is wider than the screen."""
    server_process.post("wide/" + "w" * 150, [1.0, 2.0])
    with open_page(browser, *size) as page:
        for path in ("/", "/#alarms", "/#stream=" + quote("wide/" + "w" * 150, safe=""), "/api"):
            page.goto(server_process.url + path)
            page.locator("h1, .stream .name").locator("visible=true").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], path


def test_the_token_is_required(browser: Browser, tmp_path: Path) -> None:
    """A wrong token is reported, the right one opens the page, until logout."""
    server = ServerProcess(tmp_path, token=TOKEN)
    try:
        with open_page(browser) as page:
            page.goto(server.url)
            page.get_by_label("Token").fill("not the token of it")
            page.get_by_role("button", name="Open").click()
            expect(page.get_by_role("alert")).to_contain_text("rong token")
            page.get_by_label("Token").fill(TOKEN)
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
            expect(page.locator(".live")).to_have_text("live")
            expect(page.locator(".first-steps pre").first).to_contain_text("Bearer $LIMPET_TOKEN")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_label("Token")).to_be_visible()
    finally:
        server.stop()
