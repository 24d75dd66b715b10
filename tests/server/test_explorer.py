"""The back end of the explorer: its responses equal what Python computes."""

import gzip
import io
import json
import shlex
from contextlib import redirect_stdout

import numpy as np
import pandas
import pytest

import limpet as lp
from helpers.commands import run_in_process

fastapi = pytest.importorskip("fastapi", reason="the server needs fastapi")

from fastapi.testclient import TestClient  # noqa: E402

from limpet.metrics import segment_mse  # noqa: E402
from limpet.server.explorer import dataset, examples, routes  # noqa: E402
from limpet.server.explorer._lru import SizedLRUCache  # noqa: E402
from limpet.server.explorer.settings import AutoSettings, ManualSettings  # noqa: E402
from limpet.server.responses import install_error_handlers  # noqa: E402
from limpet.server.security import RequestGuard, SecurityConfig, SecurityMiddleware  # noqa: E402

N = 900
rng = np.random.default_rng(8)
FLOW = rng.normal(20.0, 0.5, N).round(3)
FLOW[600:] += 3.0
FLOW[300] = 90.0
OTHER = rng.normal(size=N).round(3)
TIMES = [f"2026-03-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(N)]
CSV = "time,flow,other,remark\n" + "".join(f"{t},{a},{b},ok\n" for t, a, b in zip(TIMES, FLOW, OTHER, strict=True))
MANUAL_SETTINGS = {"mode": "manual", "gamma": 6.0, "rho": 0.02}


@pytest.fixture(scope="module")
def client():
    app = fastapi.FastAPI()
    install_error_handlers(app)
    app.include_router(routes.router)
    app.state.request_guard = RequestGuard(SecurityConfig(max_requests_per_s=1e9, max_file_mb=4.0))
    app.add_middleware(SecurityMiddleware, request_guard=app.state.request_guard)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=True) as client:
        yield client


def upload(client, content=CSV, name="pump.csv"):
    response = client.post("/explore/data", params={"name": name}, content=content)
    assert response.status_code == 200, response.text
    return response.json()


def run_explorer(client, data, settings, **more):
    response = client.post("/explore/runs", json={"data": data, "settings": settings, **more})
    assert response.status_code == 200, response.text
    return response.json()


def assert_error(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    return error["message"]


def to_floats(listed):
    return np.array([np.nan if item is None else item for item in listed], np.float32)


def test_built_in_streams_are_listed_and_shown(client):
    result = client.get("/explore/streams").json()
    names = [item["name"] for item in result["streams"]]
    assert {"levels", "burst", "correlated-pair", "season", "abrupt", "gradual", "abrupt-3d", "gradual-3d"} <= set(
        names
    )
    data = client.get("/explore/data/builtin:abrupt-3d").json()
    stream = lp.datasets.make_abrupt(dim=3)
    np.testing.assert_array_equal(np.array(data["values"]), stream.y.T)
    np.testing.assert_array_equal(np.array(data["means"]), stream.means.transpose(2, 1, 0))
    assert data["change_points"] == stream.change_points
    assert data["suggested"]["n_components"] == 2
    assert client.get("/explore/data/builtin:correlated-pair?columns=pressure").json()["columns"] == ["pressure"]


def test_well_log_is_listed_only_if_its_file_exists(client, tmp_path, monkeypatch):
    monkeypatch.setenv("LIMPET_DATA", str(tmp_path))
    assert "well-log" not in examples.list_names()
    assert_error(client.get("/explore/data/builtin:well-log"), 404, "unknown_data")


def test_a_file_has_the_schema_of_detect(client):
    result = upload(client)
    assert result["all_columns"] == ["flow", "other"]
    assert result["metadata"]["time"] == "time"
    assert result["metadata"]["ignored"] == {"remark": "not numeric"}
    data = client.get(f"/explore/data/{result['id']}").json()
    np.testing.assert_array_equal(data["values"], [FLOW, OTHER])
    assert data["times"] == TIMES
    assert data["means"] is None
    packed = upload(client, gzip.compress(CSV.encode()), "pump.csv.gz")
    assert client.get(f"/explore/data/{packed['id']}").json()["values"] == data["values"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("".join(json.dumps({"flow": a, "other": b}) + "\n" for a, b in zip(FLOW, OTHER, strict=True)), "pump.jsonl"),
        ("flow\tother\n" + "".join(f"{a}\t{b}\n" for a, b in zip(FLOW, OTHER, strict=True)), "pump.tsv"),
        (
            "flow;other\n" + "".join(f"{a};{b}\n".replace(".", ",") for a, b in zip(FLOW, OTHER, strict=True)),
            "a/b/pump",
        ),
    ],
)
def test_other_file_formats_give_the_same_data(client, content, name):
    data = client.get(f"/explore/data/{upload(client, content, name)['id']}").json()
    np.testing.assert_array_equal(data["values"], [FLOW, OTHER])


def test_parquet(client):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"flow": FLOW, "other": OTHER}), file)
    data = client.get(f"/explore/data/{upload(client, file.getvalue(), 'pump.parquet')['id']}").json()
    np.testing.assert_array_equal(data["values"], [FLOW, OTHER])
    assert_error(client.post("/explore/data?name=pump.parquet", content=file.getvalue()[:-40]), 422, "unreadable")


def test_single_stream_is_selected_by_key(client):
    rows = "".join(f"{i},{key},{FLOW[i] + 5 * (key == 'b')}\n" for i in range(N) for key in "ab")
    result = upload(client, f"time,sensor,flow\n{rows}")
    assert result["keys"] == [{"key": "a", "rows": N}, {"key": "b", "rows": N}]
    data = client.get(f"/explore/data/{result['id']}?key=b").json()
    np.testing.assert_allclose(data["values"], [FLOW + 5])
    run = run_explorer(client, result["id"], MANUAL_SETTINGS, key="b", columns=["flow"])
    assert run["n_rejected"] == lp.SRA(gamma=6.0, rho=0.02).process(np.array(data["values"][0])).rejected.sum()
    assert "lp.Fleet(" in run["python"]
    assert_error(client.get(f"/explore/data/{result['id']}?key=c"), 404, "unknown_key")


def test_streams_are_separated_by_the_requested_key_column(client, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "flow,state\n" + "".join(f"{y},{'low' if i % 3 else 'high'}\n" for i, y in enumerate(FLOW))
    (tmp_path / "pump.csv").write_text(text)
    result = upload(client, text)
    assert (result["keys"], result["metadata"]["key_candidates"], result["metadata"]["hints"]) == (None, ["state"], [])
    response = client.post("/explore/data", params={"name": "pump.csv", "key_column": "state"}, content=text).json()
    assert response["id"] != result["id"]
    assert response["keys"] == [{"key": "high", "rows": 300}, {"key": "low", "rows": 600}]
    run = run_explorer(client, response["id"], MANUAL_SETTINGS, key="low")
    assert "key='state'" in run["python"]
    code, _, _ = run_in_process(
        [*shlex.split(run["command"])[1:], "--output-format", "json", "--no-report"], capsys, monkeypatch
    )
    assert code == 0
    missing = client.post("/explore/data", params={"name": "pump.csv", "key_column": "none such"}, content=text)
    assert "none such" in assert_error(missing, 422, "unreadable")


def test_other_encodings_are_reported(client):
    text = "Temp °C\n" + "\n".join(map(str, FLOW))
    assert not upload(client, text.encode())["metadata"]["hints"]
    assert "not UTF-8" in upload(client, text.encode("latin-1"))["metadata"]["hints"][0]


def test_rows_without_a_value_are_noted(client):
    rows = [*FLOW[:200], "", *FLOW[200:400]]
    id = upload(client, "flow,other\n" + "".join(f"{y},\n" if y == "" else f"{y},1\n" for y in rows))["id"]
    assert run_explorer(client, id, {"mode": "auto"}, columns=["flow"])["notes"] == ["1 row without a value, not used."]


def test_run_equals_the_learner(client):
    id = upload(client)["id"]
    run = run_explorer(client, id, {"mode": "auto", "far": 1e-3}, columns=["flow"])
    model = lp.Detector(far=1e-3)
    trace = model.process(FLOW, record="means")
    assert run["n_rejected"] == trace.rejected.sum() > 0
    assert run["rejected"] == np.flatnonzero(trace.rejected).tolist()
    for name in ("score", "change_score", "p_value"):
        np.testing.assert_array_equal(to_floats(run[name]), getattr(trace, name).astype(np.float32))
    np.testing.assert_array_equal(to_floats(run["estimate"][0][0]), trace.means[:, 0, 0].astype(np.float32))
    assert [(item["kind"], item["row"], item["onset"]) for item in run["alarms"]] == [
        (item.kind, item.row, item.onset) for item in trace.alarms
    ]
    change = next(item for item in run["alarms"] if item["kind"] == "change")
    assert change["variables"] == ["flow"]
    assert change["time"] == TIMES[change["row"]]
    assert run["alarms_by"] == "self"
    assert "0.001" not in run["summary"]
    assert run["summary"].splitlines()[0] == model.summary().splitlines()[0]
    assert run["rho"] == pytest.approx(model.fitted_params()["rho"])


def test_manual_runs_have_alarms_of_the_automatic_learner(client):
    id = upload(client)["id"]
    run = run_explorer(client, id, MANUAL_SETTINGS | {"far": 1e-3}, columns=["flow"])
    assert run["n_rejected"] == lp.SRA(gamma=6.0, rho=0.02).process(FLOW).rejected.sum()
    assert run["alarms_by"] == "auto"
    trace = lp.Detector(far=1e-3).process(FLOW)
    assert [item["row"] for item in run["alarms"]] == [item.row for item in trace.alarms]
    again = run_explorer(client, id, MANUAL_SETTINGS | {"far": 1e-3, "gamma": 9.0}, columns=["flow"])
    assert again["alarms"] == run["alarms"]
    tied = run_explorer(client, id, {"mode": "manual", "gamma": 3.0, "beta": 0.1, "M": 5.0}, columns=["flow"])
    assert tied["rho"] == pytest.approx(lp.tradeoff.step_size(3.0, 0.1, 5.0))
    unlimited = run_explorer(client, id, {"mode": "manual", "gamma": None, "rho": 0.02}, columns=["flow"])
    assert (unlimited["n_rejected"], unlimited["gamma"]) == (0, None)


def test_warnings_of_a_learner_are_notes(client):
    run = run_explorer(client, "builtin:levels", {"mode": "manual", "gamma": 3.0, "rho": 0.01})
    assert any("rejected" in note for note in run["notes"])


def test_errors_of_the_estimate_equal_the_metrics(client):
    settings = {"mode": "manual", "gamma": 6.0, "rho": 0.02, "n_components": 2}
    stream = lp.datasets.make_abrupt()
    means = lp.SRA(2, 6.0, 0.02).process(stream.y, record="means").means
    assert run_explorer(client, "builtin:abrupt", settings)["mse"]["total"] == pytest.approx(
        segment_mse(means, stream.means, 10_000).S_tot
    )
    result = run_explorer(client, "builtin:abrupt", settings | {"n_components": 1})["mse"]
    assert result["total"] is None
    assert "n_components: must be 2" in result["message"]


@pytest.mark.parametrize(
    ("settings", "detector"),
    [
        ({"name": "SEM", "rho": 0.03}, lp.SEM(1, rho=0.03)),
        ({"name": "KSWIN", "window": 60, "stat": 20}, lp.drift.KSWIN(window=60, stat=20)),
        ({"name": "PageHinkley", "delta": 20.5}, lp.drift.PageHinkley(delta=20.5)),
        (
            {"name": "RiverPageHinkley", "delta": 0.1, "threshold": 25.0},
            lp.drift.RiverPageHinkley(delta=0.1, threshold=25.0),
        ),
    ],
)
def test_baselines(client, settings, detector):
    run = run_explorer(client, upload(client)["id"], {"mode": "baseline", **settings}, columns=["flow"])
    scores = detector.process(FLOW)
    scores = scores.score if settings["name"] == "SEM" else scores
    np.testing.assert_array_equal(to_floats(run["score"]), scores.astype(np.float32))
    assert run["command"] is None
    assert run["alarms_by"] == (None if settings["name"] in ("SEM", "PageHinkley") else "detector")


@pytest.mark.parametrize(
    ("settings", "max_changes"),
    [
        ({"name": "ADWIN"}, 1),
        ({"name": "KSWIN", "alpha": 1e-6}, 1),
        ({"name": "RiverPageHinkley", "delta": 0.1, "threshold": 25.0}, 2),
    ],
)
def test_detections_are_reported(client, settings, max_changes):
    if settings["name"] == "ADWIN":
        pytest.importorskip("river", reason="ADWIN is river's")
    calm = np.delete(FLOW, 300)
    id = upload(client, "flow\n" + "".join(f"{y}\n" for y in calm))["id"]
    run = run_explorer(client, id, {"mode": "baseline", **settings})
    rows = [item["row"] for item in run["alarms"]]
    assert 1 <= len(rows) == run["n_changes"] <= max_changes
    assert 599 <= rows[0] < 660
    assert run["n_rejected"] is None


def write_files(folder):
    (folder / "pump.csv").write_text(CSV)
    pandas.read_csv(io.StringIO(CSV)).to_parquet(folder / "pump.parquet")


@pytest.mark.parametrize("name", ["pump.csv", "pump.parquet"])
def test_copied_python_of_a_drift_detector_gives_the_same_scores(client, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    id = upload(client, (tmp_path / name).read_bytes(), name)["id"]
    run = run_explorer(client, id, {"mode": "baseline", "name": "KSWIN"}, columns=["flow"])
    variables = {}
    with redirect_stdout(io.StringIO()):
        exec(run["python"], variables)
    np.testing.assert_array_equal(variables["scores"][:, 0].astype(np.float32), to_floats(run["score"]))


@pytest.mark.parametrize("data", ["builtin:levels", "builtin:correlated-pair", "pump.csv", "pump.parquet"])
@pytest.mark.parametrize("settings", [{"mode": "auto", "far": 1e-3}, MANUAL_SETTINGS, {"mode": "manual", "rho": 0.05}])
def test_copied_python_gives_the_same_result(client, data, settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    is_file = not data.startswith("builtin:")
    id = upload(client, (tmp_path / data).read_bytes(), data)["id"] if is_file else data
    run = run_explorer(client, id, settings, columns=["flow"] if is_file else None)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(run["python"], {})
    assert f"{run['n_rejected']} points rejected" in printed.getvalue()


@pytest.mark.parametrize("settings", [{"mode": "auto", "far": 1e-3}, {"mode": "manual", "gamma": None, "rho": 0.02}])
def test_copied_command_gives_the_same_result(client, settings, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pump.csv").write_text(CSV)
    run = run_explorer(client, upload(client)["id"], settings, columns=["flow"])
    words = shlex.split(run["command"])
    assert words[0] == "limpet"
    code, out, _ = run_in_process([*words[1:], "--output-format", "json", "--no-report"], capsys, monkeypatch)
    result = json.loads(out)
    assert code == 0
    assert result["counts"]["rejected"] == run["n_rejected"]
    assert [item["row"] for item in result["alarms"]] == (
        [a["row"] for a in run["alarms"]] if result["raises_alarms"] else []
    )


def test_tradeoff_is_measured_if_true_means_exist(client):
    request = {"data": "builtin:levels", "settings": {"mode": "auto"}}
    result = client.post("/explore/tradeoff", json=request).json()
    assert result["kind"] == "mse"
    values = np.array(result["values"], float)
    i, j = np.unravel_index(np.nanargmin(values), values.shape)
    best = result["best"]
    assert (best["gamma"], best["rho"]) == (result["gammas"][i], result["rhos"][j])
    settings = {"mode": "manual", "gamma": best["gamma"], "rho": best["rho"]}
    assert run_explorer(client, "builtin:levels", settings)["mse"]["total"] == pytest.approx(best["value"])


def test_tradeoff_is_the_bound_without_true_means(client):
    request = {"data": upload(client)["id"], "columns": ["flow"], "settings": {"mode": "auto"}}
    result = client.post("/explore/tradeoff", json=request).json()
    assert result["kind"] == "bound"
    assert "contamination" in result["assumptions"]
    assert result["best"]["value"] <= 1.05 * np.min(result["values"])
    request["settings"] = {"mode": "baseline", "name": "SEM"}
    assert_error(client.post("/explore/tradeoff", json=request), 422, "invalid")


def test_large_files_are_truncated_with_a_notice(client, monkeypatch):
    monkeypatch.setattr(dataset, "MAX_VALUES", 1000)
    result = upload(client, CSV, "cut.csv")
    assert result["metadata"]["is_truncated"]
    assert result["n_rows"] == 500


def test_too_large_file_is_an_error(client):
    size = client.get("/explore/streams").json()["limits"]["max_bytes"]
    assert size == 4 << 20  # as configured
    content = b"a,b\n" + b"1,2\n" * (size // 4)
    assert "detect" in assert_error(client.post("/explore/data?name=a.csv", content=content), 413, "too_large")
    in_parts = client.post("/explore/data?name=a.csv", content=iter([content[: size - 2], content[size - 2 :]]))
    assert_error(in_parts, 413, "too_large")
    assert upload(client, content[:size])["n_rows"] > 0


@pytest.mark.parametrize(
    ("content", "name", "text"),
    [
        (b"", "empty.csv", "empty"),
        (b"\x00\x01\x02\xff" * 100, "noise.csv", "must be UTF-8 text"),
        (b"a,b\nx,y\nz,w\n", "words.csv", "no column is numeric"),
        (b"not parquet", "x.parquet", "x.parquet"),
        (b"not gzip", "x.csv.gz", "x.csv.gz"),
        (b'{"a": \n{"b"\n', "broken.jsonl", "broken.jsonl"),
    ],
)
def test_unreadable_files_are_errors(client, content, name, text):
    message = assert_error(client.post("/explore/data", params={"name": name}, content=content), 422, "unreadable")
    assert text in message
    assert "/tmp" not in message


def test_paths_and_surrogates_in_names_are_harmless(client):
    result = upload(client, '{"\\ud800": 1, "a": 2}\n{"\\ud800": 2, "a": 3}\n', "../../etc/<b>.jsonl")
    assert result["name"] == "<b>.jsonl"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"mode": "manual", "gamma": -1.0, "rho": 0.1}, "gamma"),
        ({"mode": "manual", "gamma": 3.0, "beta": 0.1}, "beta:"),
        ({"mode": "manual", "gamma": 3.0, "rho": 0.1, "beta": 0.1, "M": 5.0}, "rho:"),
        ({"mode": "manual", "gamma": 3.0, "rho": "NaN"}, "rho"),
        ({"mode": "auto", "far": 0.5}, "far"),
        ({"mode": "auto", "n_components": 99}, "n_components"),
        ({"mode": "auto", "season": 1}, "season"),
        ({"mode": "auto", "lags": -1}, "lags"),
        ({"mode": "manual", "gamma": 0.0, "rho": 0.1}, "gamma"),
        ({"mode": "manual", "gamma": 3.0, "rho": 1.5}, "rho"),
        ({"mode": "manual", "gamma": 3.0, "rho": 0.1, "norm": "huge"}, "norm"),
        ({"mode": "baseline", "name": "SDEM", "r": 0.0}, "r"),
        ({"mode": "auto", "gamma": 3.0}, "gamma"),
        ({"mode": "other"}, "mode"),
        ({"mode": "baseline", "name": "KSWIN", "window": 20, "stat": 15}, "stat"),
    ],
)
def test_invalid_settings_are_errors(client, settings, text):
    assert text in assert_error(
        client.post("/explore/runs", json={"data": "builtin:levels", "settings": settings}), 422, "invalid"
    )


def test_limits_of_settings_are_those_of_the_learner():
    schemas = {model: model.model_json_schema()["properties"] for model in (AutoSettings, ManualSettings)}
    auto, manual = schemas[AutoSettings], schemas[ManualSettings]
    far = lp.Detector.constraints["far"]
    assert (auto["far"]["minimum"], auto["far"]["maximum"]) == (far.low, far.high)
    assert [limits.get("minimum", limits.get("const")) for limits in auto["season"]["anyOf"]] == [2, 0]
    assert [manual[name]["anyOf"][0]["exclusiveMinimum"] for name in ("gamma", "rho", "beta", "M")] == [0, 0, 0, 0]
    assert manual["rho"]["anyOf"][0]["maximum"] == 1
    assert tuple(manual["norm"]["enum"]) == lp.SRA.constraints["norm"].values


def test_evicted_data_must_be_uploaded_again(client, monkeypatch):
    assert_error(client.post("/explore/runs", json={"data": "gone", "settings": MANUAL_SETTINGS}), 404, "unknown_data")
    assert_error(client.get("/explore/data/builtin:none"), 404, "unknown_data")
    monkeypatch.setattr(routes, "DATASET_CACHE", SizedLRUCache(1))
    first, second = upload(client)["id"], upload(client, CSV, "second.csv")["id"]
    assert_error(client.get(f"/explore/data/{first}"), 404, "unknown_data")
    assert client.get(f"/explore/data/{second}").status_code == 200


def test_run_on_three_points(client):
    short = upload(client, "a\n1\n2\n3\n", "short.csv")["id"]
    run = run_explorer(client, short, {"mode": "auto"})
    assert (run["n_rows"], run["n_rejected"], run["alarms"]) == (3, 0, [])
    assert "not started" in run["summary"]
    run_explorer(client, short, MANUAL_SETTINGS)
    assert client.post("/explore/tradeoff", json={"data": short, "settings": MANUAL_SETTINGS}).status_code == 200
