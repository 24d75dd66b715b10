"""The explorer in a browser: charts and strings equal what Python computes."""

import hashlib
import threading
import time

import numpy as np
import pytest

import limpet as lp

pytest.importorskip("playwright", reason="browser tests need playwright")
uvicorn = pytest.importorskip("uvicorn", reason="the server needs uvicorn")

from pydantic import TypeAdapter  # noqa: E402

from helpers.pages import CHROMIUM, open_browser, open_page, wait_until  # noqa: E402
from limpet.server.app import make_app  # noqa: E402
from limpet.server.explorer import routes  # noqa: E402
from limpet.server.explorer._lru import SizedLRUCache  # noqa: E402
from limpet.server.explorer.settings import AnySettings  # noqa: E402
from limpet.server.monitor import MonitorConfig  # noqa: E402

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH")

N = 1400
rng = np.random.default_rng(9)
FLOW = rng.normal(20.0, 0.5, N).round(3)
FLOW[1000:] += 2.0
FLOW[rng.choice(1000, 12, replace=False)] += rng.uniform(3.0, 30.0, 12).round(3)
TIMES = [f"2026-03-01 {i // 60:02d}:{i % 60:02d}" for i in range(N)]
HTML_NAMES = ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>"]
REJECTED = '[data-side="{}"] [data-fact="rejected"]'


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The server with the explorer, on a free port."""
    store = tmp_path_factory.mktemp("explorer") / "store.db"
    app = make_app(MonitorConfig(database=str(store), learner=lp.Detector()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/explorer"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def csv_path(tmp_path):
    path = tmp_path / "pump.csv"
    path.write_text("time,flow\n" + "".join(f"{t},{y}\n" for t, y in zip(TIMES, FLOW, strict=True)))
    return path


def wait_for_run(page, **settings):
    """Wait for a run of side A with these settings; return it."""
    js = """wanted => { const run = window.limpet?.explorer.state.runs.A;
        return run && Object.entries(wanted).every(([name, value]) => run.settings[name] === value) && run }"""
    return wait_until(page, js, settings, 120.0)


def open_file(page, address, csv_path, rows=N):
    """Open the page and upload the file."""
    page.goto(address)
    wait_for_run(page)
    page.set_input_files("#file", csv_path)
    wait_until(page, "rows => limpet.explorer.state.runs.A?.n_rows === rows", rows, 120.0)


def drop_file(page, path):
    """Drop a file on the page."""
    js = """([name, text]) => { const moved = new DataTransfer(); moved.items.add(new File([text], name));
        const options = { dataTransfer: moved, bubbles: true, cancelable: true };
        for (const type of ["dragenter", "dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(type, options)) }"""
    page.evaluate(js, [path.name, path.read_text()])


def get_series(page, series, panel="value 0", side="A"):
    """Return a series of uPlot."""
    return page.evaluate("([side, panel, n]) => limpet.explorer.charts(side)[panel].data[n]", [side, panel, series])


def get_rows(values):
    return [row for row, value in enumerate(values) if value is not None]


def move_slider(page, name, value):
    """Move a slider in many steps, as by hand, and set its value."""
    js = """([name, value]) => { const range = document.querySelector(`input[type=range][data-name=${name}]`);
        const number = document.querySelector(`[data-name=${name}-number]`);
        for (let at = 0; at <= 1000; at += 20) { range.value = at; range.dispatchEvent(new Event("input")); }
        number.value = value; number.dispatchEvent(new Event("change")); }"""
    page.evaluate(js, [name, str(value)])


def test_uploaded_file_and_sliders(browser, address, csv_path):
    with open_page(browser) as page:
        open_file(page, address, csv_path)
        trace = lp.Detector().process(FLOW, record="means")
        assert get_series(page, 1) == FLOW.tolist()
        assert get_rows(get_series(page, 2)) == np.flatnonzero(trace.rejected).tolist()
        estimate = np.array([np.nan if item is None else item for item in get_series(page, 3)], np.float32)
        np.testing.assert_array_equal(estimate, trace.means[:, 0, 0].astype(np.float32))
        assert page.locator(REJECTED.format("A")).inner_text().startswith(f"{trace.rejected.sum()} ")
        strings = page.locator(".alarms tbody tr").all_inner_texts()
        assert len(strings) == len(trace.alarms)
        assert all("flow" in item for item in strings)
        assert "2026-03-01 16:4" in strings[-1]

        page.get_by_role("button", name="Manual").first.click()
        page.evaluate("document.querySelector('[data-name=rho-number]').value = '0.02'")
        page.evaluate("document.querySelector('[data-name=rho-number]').dispatchEvent(new Event('change'))")
        counts = []
        for gamma in (4.0, 12.0, "∞"):
            move_slider(page, "gamma", gamma)
            gamma_value = float("inf") if gamma == "∞" else gamma
            if gamma == "∞":
                wait_until(page, "() => limpet.explorer.state.runs.A.settings.gamma === Infinity")
            else:
                wait_for_run(page, gamma=gamma, rho=0.02)
            rejected = lp.SRA(gamma=gamma_value, rho=0.02).process(FLOW).rejected
            assert get_rows(get_series(page, 2)) == np.flatnonzero(rejected).tolist()
            assert page.locator(REJECTED.format("A")).inner_text().startswith(f"{rejected.sum()} ")
            counts.append(int(rejected.sum()))
        assert counts[0] > counts[1] > counts[2] == 0
        move_slider(page, "gamma", "3,5")
        wait_for_run(page, gamma=3.5)
        move_slider(page, "far", 5)
        assert page.locator(".why:visible").all_inner_texts() == ["From 10 to 1,000,000,000,000."]
        assert "far=0.01&" in page.url  # the slider's end, not 1/5
        move_slider(page, "gamma", "∞")
        wait_until(page, "() => limpet.explorer.state.runs.A.settings.gamma === Infinity")
        assert (
            "limpet detect pump.csv --learner sra --gamma inf --rho 0.02"
            in page.locator(".code pre").last.text_content()
        )


def test_html_in_names_is_not_executed(browser, address, tmp_path):
    path = tmp_path / "nasty <b>.csv"
    rows = rng.normal(size=(300, 2)).round(3)
    path.write_text("time," + ",".join(HTML_NAMES) + "\n" + "".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(rows)))
    with open_page(browser) as page:
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        wait_for_run(page)
        drop_file(page, path)
        wait_until(page, "() => limpet.explorer.state.runs.A?.n_rows === 300", seconds=120.0)
        wait_until(page, "() => document.querySelectorAll('.chart-title').length >= 3")
        titles = " ".join(page.locator(".chart-title").all_inner_texts())
        assert all(name in titles for name in HTML_NAMES)
        assert "nasty <b>.csv" in page.locator(".schema").inner_text()
        assert page.locator("main img, main script, main b b").count() == 0
        assert dialogs == []


def test_step_size_on_the_page_is_that_of_corollary_1(browser, address):
    js = "([gamma, beta, M]) => import('/static/explorer/state.js').then(state => state.tiedStep(gamma, beta, M))"
    with open_page(browser) as page:
        page.goto(address)
        for gamma, beta, M in [(3.0, 0.1, 5.0), (0.5, 1.0, 2.0), (8.0, 0.01, 3.0)]:
            expected = float(lp.tradeoff.step_size(gamma, beta, M))
            assert page.evaluate(js, [gamma, beta, M]) == pytest.approx(expected, rel=1e-14)


def test_server_accepts_the_limits_of_the_page(browser, address):
    js = """() => import('/static/explorer/state.js').then(({ LIMITS, BASELINES, defaultSettings, toRequest }) =>
        Object.entries(LIMITS).flatMap(([name, limits]) => limits.flatMap(value =>
            [{ mode: "auto" }, { mode: "manual" }, { mode: "manual", tied: true },
             ...Object.keys(BASELINES).map(baseline => ({ mode: "baseline", baseline }))
            ].map(mode => toRequest(defaultSettings({ ...mode, [name]: value }))))))"""
    with open_page(browser) as page:
        page.goto(address)
        requests = page.evaluate(js)
    assert len(requests) > 200
    settings = TypeAdapter(AnySettings)
    for request in requests:
        setting = settings.validate_python(request)
        if "beta" not in request and "stat" not in request:  # which limit other parameters
            setting.learner()


def test_two_settings_are_compared(browser, address, csv_path):
    with open_page(browser) as page:
        open_file(page, address, csv_path)
        page.locator("#compare").click()
        wait_until(page, "() => limpet.explorer.state.runs.B && limpet.explorer.charts('B')", seconds=120.0)
        assert page.locator(".view:visible").count() == 2
        scores = lp.SEM(1, rho=0.01).process(FLOW).score.astype(np.float32)
        shown = np.array([np.nan if item is None else item for item in get_series(page, 1, "score", "B")], np.float32)
        np.testing.assert_array_equal(shown, scores)
        table = page.locator("#differences").inner_text()
        assert f"{lp.Detector().process(FLOW).rejected.sum()}" in table
        box = page.locator('[data-side="A"] .u-over').first.bounding_box()
        page.mouse.move(box["x"] + 50, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 150, box["y"] + 60, steps=3)
        page.mouse.up()
        js = """() => { const [a, b] = ["A", "B"].map((side) => limpet.explorer.charts(side)["score"].scales.x);
            return a.min > 0 && a.min === b.min && a.max === b.max }"""
        wait_until(page, js)
        page.locator("select[data-name=baseline]:visible").select_option("PageHinkley")
        run = wait_until(page, "() => (({B}) => B.alarms_by === 'detector' && B)(limpet.explorer.state.runs)")
        assert any(1000 < item["row"] < 1050 for item in run["alarms"])
        assert page.locator(REJECTED.format("B")).inner_text() == "–"


def test_link_waits_for_its_file_and_history_works(browser, address, csv_path):
    with open_page(browser) as page:
        id = hashlib.sha256(b"pump.csv\0" + csv_path.read_bytes() + b"\n").hexdigest()[:20]  # never given before
        page.goto(f"{address}#data={id}&mode=manual&gamma=11&rho=0.08")
        wait_for_run(page, mode="auto")
        assert "is not on the server" in page.locator(".schema").inner_text()
        csv_path.write_text(csv_path.read_text() + "\n")
        drop_file(page, csv_path)
        assert wait_for_run(page, mode="manual", gamma=11, rho=0.08)["n_rows"] == N
        page.locator("[data-id='builtin:burst']").click()
        wait_until(page, "() => limpet.explorer.state.data.id === 'builtin:burst' && location.hash.includes('burst')")
        page.go_back()
        wait_until(page, "id => limpet.explorer.state.data.id === id", id)
        assert wait_for_run(page, mode="manual", gamma=11)["n_rows"] == N


def test_broken_link_and_unreachable_server(browser, address):
    with open_page(browser) as page:
        page.goto(address + "#data=builtin:levels&mode=zzz&far=7&components=1.5&norm=q")
        wait_for_run(page, mode="auto", far=1e-4, components=1)
        strings = "async () => (await import('/static/common/api.js')).api('/health').catch((error) => error.message)"
        page.context.set_offline(True)
        assert page.evaluate(strings) == "The server does not respond."


def test_numbers_and_times_in_common_formats_are_parsed(browser, address):
    with open_page(browser) as page:
        page.goto(address)
        numbers = "async (strings) => strings.map((await import('/static/common/inputs.js')).readNumber)"
        strings = ["3,5", "10,000", "1,234,567.5", "0,005", "1 000", "∞", "1e-3"]
        assert page.evaluate(numbers, strings) == [3.5, 10_000, 1_234_567.5, 0.005, 1000, float("inf"), 1e-3]
        assert np.isnan(page.evaluate(numbers, ["", "1,5,3", "1.234,5", "x"])).all()
        labels = "async (times) => (await import('/static/charts/axis.js')).timeLabels(times)"
        assert page.evaluate(labels, ["01.03.2026 10:00:00", "01.03.2026 11:00:00"]) == ["10:00:00", "11:00:00"]
        assert page.evaluate(labels, ["01.03.2026 00:00", "02.03.2026 00:00"]) == ["01.03.2026", "02.03.2026"]
        assert page.evaluate(labels, ["spring", "spring", "summer"]) is None


def test_link_restores_settings_and_alarm_zooms(browser, address):
    with open_page(browser) as page:
        page.goto(address + "#data=builtin:levels&mode=manual&gamma=11&rho=0.08")
        run = wait_for_run(page, mode="manual", gamma=11, rho=0.08)
        stream = lp.datasets.Stream(np.array(get_series(page, 1)))
        assert run["n_rejected"] == lp.SRA(gamma=11.0, rho=0.08).process(stream.y).rejected.sum()
        wait_until(page, "() => limpet.explorer.tradeoff()?.kind === 'mse'", seconds=120.0)
        page.get_by_role("button", name="Use the best pair").click()
        best = page.evaluate("() => limpet.explorer.tradeoff().best")
        wait_for_run(page, gamma=best["gamma"], rho=best["rho"])
        assert f"gamma={best['gamma']}" in page.url
        page.locator(".alarms tbody tr", has_text="change").first.get_by_role("button").click()
        low, high = page.evaluate("() => (({min, max}) => [min, max])(limpet.explorer.charts()['value 0'].scales.x)")
        assert 1000 < low < 1500 < high < 2000


def test_evicted_file_is_uploaded_again(browser, address, csv_path, monkeypatch):
    with open_page(browser) as page:
        open_file(page, address, csv_path)
        monkeypatch.setattr(routes, "DATASET_CACHE", SizedLRUCache(1 << 20))
        page.get_by_role("button", name="Manual").first.click()
        run = wait_for_run(page, mode="manual")
        assert run["n_rows"] == N


def test_page_fits_a_phone(browser, address):
    with open_page(browser, 360, 740) as page:
        page.goto(address + "#data=builtin:correlated-pair&compare=1&b.mode=manual")
        wait_for_run(page)
        wait_until(page, "() => limpet.explorer.state.runs.B")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
