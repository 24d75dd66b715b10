"""Test each extra alone in an empty environment, by a small real use."""

import re
import shutil
import signal
import urllib.request
from textwrap import dedent

import pytest

from helpers.packages import ROOT, build_distribution, make_environment, read_extras

pytestmark = pytest.mark.package

USER_PACKAGES = {"dataframes": ("pandas", "polars")}  # which users of an extra install themselves
SRA_FLAGS = ("--learner", "sra", "--gamma", "4", "--rho", "0.01")  # compiles faster than Detector
CLOSED_PORT = "127.0.0.1:1"


@pytest.fixture
def environment(request, wheel, tmp_path):
    """An environment with the extra under test."""
    venv = make_environment(tmp_path / "env", wheel, request.param, extra_packages=USER_PACKAGES.get(request.param, ()))
    assert "No broken requirements" in venv.pip("check")
    yield venv
    shutil.rmtree(venv.folder)


def parametrize_extra(name):
    """Mark the test of an extra."""
    return pytest.mark.parametrize("environment", [name], indirect=True)


@pytest.fixture
def python(environment, tmp_path):
    """Run a script in the environment; return its output."""

    def run(script, **env):
        completed = environment.run(["python", "-c", dedent(script)], tmp_path, LIMPET_QUIET="1", **env)
        assert completed.returncode == 0, completed.stderr[-3000:]
        return completed.stdout.strip()

    return run


@pytest.fixture
def limpet(environment, tmp_path):
    """Run a command of limpet in the environment; return its exit code and its output."""

    def run(*words):
        completed = environment.run(["limpet", *words], tmp_path, LIMPET_QUIET="1", COLUMNS="200")
        assert "Traceback" not in completed.stderr, completed.stderr[-3000:]
        return completed.returncode, completed.stdout + completed.stderr

    return run


def test_every_extra_has_its_test(wheel):
    with open(__file__, encoding="utf-8") as file:
        tested = set(re.findall(r'^@parametrize_extra\("(\w+)"\)$', file.read(), re.MULTILINE))
    assert tested | {"dev"} == read_extras(wheel)


# The large ones come first, so that no worker ends with them alone.


@parametrize_extra("spark")
def test_spark(environment, python, tmp_path):
    """PySpark is installed; with Java, a batch is scored."""
    assert python("import pyspark; print(pyspark.__version__)").startswith("4.")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    script = """
        import limpet as lp
        from limpet import spark as ls
        session = ls.session(1, spark_driver_memory="1g")
        rows = [("a", i, float(i % 7)) for i in range(200)]
        frame = session.createDataFrame(rows, "sensor string, t long, level double")
        scored = ls.score(frame, "sensor", ["level"], "t", lp.SRA(gamma=4.0, rho=0.01)).collect()
        print(len(scored), sum(row["score"] is not None for row in scored) > 100)
    """
    assert python(script) == "200 True"


EVERY_MODULE = """
    import importlib, pkgutil, limpet
    names = [module.name for module in pkgutil.walk_packages(limpet.__path__, "limpet.")]
    for name in names:
        if name != "limpet.__main__":
            importlib.import_module(name)
    print(len(names) > 200)
"""


@parametrize_extra("local")
def test_local(python):
    """All but Spark, at once."""
    assert python(EVERY_MODULE) == "True"


@parametrize_extra("all")
def test_all(python):
    """With Spark, which limits the versions of others."""
    assert python(EVERY_MODULE) == "True"
    assert python("import pyspark, sktime, sklearn; print(int(sktime.__version__.split('.')[0]) >= 0)") == "True"


@parametrize_extra("dataframes")
def test_dataframes(python):
    script = """
        import limpet as lp, pandas, polars
        columns = {"sensor": ["a", "b"] * 200, "level": [float(i % 7) for i in range(400)]}
        for library in (pandas, polars):
            trace = lp.SRA(gamma=4.0, rho=0.01).process(library.DataFrame({"level": columns["level"]}))
            fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
            fleet.process(library.DataFrame(columns), key="sensor")
            print(len(trace.score), len(fleet))
    """
    assert python(script) == "400 2\n400 2"


@parametrize_extra("plots")
def test_plots(limpet, tmp_path):
    assert limpet("tradeoff", "--gamma", "1,3", "--c1", "0.01", "--sigma1", "0", "--out", "t.png")[0] == 0
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert limpet("demo", "--picture", "demo.png")[0] == 0
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "data:image/png" in (tmp_path / "report.html").read_text()


@parametrize_extra("webhook")
def test_webhook(python):
    script = """
        import http.server, threading
        import numpy as np, limpet as lp
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                print(len(self.rfile.read(int(self.headers["Content-Length"]))) > 0)
                self.send_response(200)
                self.end_headers()
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        x = np.random.default_rng(0).normal(size=500)
        x[400] = 50.0
        np.savetxt("x.csv", x, header="x", comments="")
        lp.run("x.csv", lp.Detector(), f"http://127.0.0.1:{server.server_port}/hook")
    """
    assert python(script) == "True"


@parametrize_extra("metrics")
def test_metrics(python):
    script = """
        import urllib.request
        from limpet.streams.metrics import make_metric, serve_metrics
        server = serve_metrics("0", lambda: [make_metric("counter", "limpet_points_total", "Points.", 7)])
        text = urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics").read().decode()
        print("limpet_points_total 7.0" in text)
        server.close()
    """
    assert python(script) == "True"


@parametrize_extra("data")
def test_data(python, tmp_path):
    """A MATLAB file from a server, into the cache."""
    script = """
        import hashlib, threading
        from functools import partial
        from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
        from pathlib import Path
        import numpy as np
        from scipy.io import savemat
        from limpet.datasets import load_thyroid
        from limpet.datasets._fetch import REMOTE_FILES, RemoteFile
        savemat("thyroid.mat", {"X": np.ones((2100, 6)), "y": np.arange(2100) % 100 == 0})
        digest = hashlib.sha256(Path("thyroid.mat").read_bytes()).hexdigest()
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory="."))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/thyroid.mat"
        REMOTE_FILES["thyroid/thyroid.mat"] = RemoteFile(url, digest)
        print(load_thyroid())
    """
    output = python(script, XDG_CACHE_HOME=str(tmp_path / "cache"), NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    assert output == "Stream('THYROID', 2100 rows x 6, 21 anomalies, test from row 2000)"
    assert list((tmp_path / "cache").rglob("thyroid.mat"))


@parametrize_extra("drift")
def test_drift(python):
    script = """
        import limpet as lp, numpy as np
        print(np.flatnonzero(lp.drift.ADWIN().process(np.repeat([0.0, 1.0], 200)) > 0).tolist())
    """
    assert python(script) == "[223, 224]"


@parametrize_extra("river")
def test_river(python):
    script = """
        from limpet.adapters.river import AnomalyDetector, DriftDetector
        model, drift = AnomalyDetector(), DriftDetector()
        scores, drifts = [], []
        for i in range(600):
            value = 0.1 * (i * 37 % 100 / 100) + 5.0 * (i >= 400) + 90.0 * (i == 300)
            scores.append(model.score_one({"level": value}))
            model.learn_one({"level": value})
            drift.update(value)
            drifts.append(bool(drift.drift_detected))
        print(scores[300] > max(scores[200:300]), 1 in drifts[400:], any(drifts[:300]))
    """
    assert python(script) == "True True False"


@parametrize_extra("sklearn")
def test_sklearn(python):
    script = """
        import numpy as np
        from limpet.adapters.sklearn import OutlierDetector
        X = np.random.default_rng(0).normal(size=(500, 2))
        X[[300, 400]] = 40.0
        labels = OutlierDetector().fit(X).predict(X)
        print(sorted(set(labels.tolist())), labels[[300, 400]].tolist())
    """
    assert python(script) == "[-1, 1] [-1, -1]"


@parametrize_extra("sktime")
def test_sktime(python):
    script = """
        import numpy as np, pandas as pd
        from limpet.adapters.sktime import ChangePointDetector
        rng = np.random.default_rng(0)
        series = pd.Series(np.concatenate([rng.normal(0.0, 1.0, 500), rng.normal(8.0, 1.0, 500)]))
        found = ChangePointDetector().fit(series).predict(series)
        print(len(found), abs(int(np.asarray(found).ravel()[0]) - 500) < 10)
    """
    assert python(script) == "1 True"


@parametrize_extra("files")
def test_files(python, limpet, tmp_path):
    """Parquet in and out; and separated values with keys, which pyarrow reads."""
    script = """
        import pyarrow, pyarrow.parquet, pyarrow.csv
        level = [20.0 + i % 7 * 0.1 + 5.0 * (i > 700) for i in range(1000)]
        table = pyarrow.table({"sensor": ["a", "b"] * 500, "level": level})
        pyarrow.parquet.write_table(table, "some.parquet")
        pyarrow.csv.write_csv(table, "some.csv")
    """
    python(script)
    for name in ("some.parquet", "some.csv"):
        code, output = limpet("detect", name, "--key", "sensor", *SRA_FLAGS, "--points", f"{name}.points.parquet")
        assert code == 0, output
        read = f"import pyarrow.parquet as p; print(len(p.read_table('{name}.points.parquet')))"
        assert python(read) == "1000"


def check_unreachable(limpet, scheme):
    """The client is installed, and reports that it cannot connect."""
    code, output = limpet("watch", f"{scheme}://{CLOSED_PORT}/levels", "--no-follow")
    assert (code, "cannot connect" in output.splitlines()[-1]) == (2, True), output


@parametrize_extra("nats")
def test_nats(limpet):
    check_unreachable(limpet, "nats")


@parametrize_extra("mqtt")
def test_mqtt(limpet):
    check_unreachable(limpet, "mqtt")


@parametrize_extra("kafka")
def test_kafka(limpet):
    check_unreachable(limpet, "kafka")


@parametrize_extra("brokers")
def test_brokers(limpet):
    for scheme in ("nats", "mqtt", "kafka"):
        check_unreachable(limpet, scheme)


def check_server(environment, cwd, *options):
    """The server starts, responds, and stops on SIGTERM."""
    words = ["limpet", "serve", "--no-open", "--port", "0", *options]
    with environment.start(words, cwd, LIMPET_QUIET="1") as running:
        output = ""
        try:
            while (match := re.search(r"serving at (http://\S+:\d+)", output)) is None:
                line = running.stderr.readline()
                assert line, output
                output += line
            for path, expected in (("/", b"<html"), ("/static/common/dom.js", b"export"), ("/streams", b"{")):
                with urllib.request.urlopen(match[1] + path, timeout=60) as response:
                    assert expected in response.read()
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        finally:
            running.kill()


@parametrize_extra("server")
def test_server(environment, limpet, tmp_path):
    check_server(environment, tmp_path, "--demo", "--database", str(tmp_path / "store.db"))
    code, output = limpet("serve", "--database", f"postgresql://nobody@{CLOSED_PORT}/none")
    assert (code, output.count("\n")) == (2, 1)
    assert "pip install 'limpet[postgres]'" in output


@parametrize_extra("postgres")
def test_postgres(environment, limpet, tmp_path, request):
    from harness.postgres import available, new_database

    code, output = limpet("serve", "--database", f"postgresql://nobody@{CLOSED_PORT}/none")
    assert (code, output.count("\n"), "cannot be opened" in output) == (2, 1, True), output
    if available():
        check_server(environment, tmp_path, "--database", new_database(request.getfixturevalue("postgres")))


@parametrize_extra("docs")
def test_docs(environment, tmp_path):
    """A page with a reference made from docstrings."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Errors\n\n::: limpet.exceptions\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ntheme: {name: material}\nplugins: [mkdocstrings]\n")
    completed = environment.run(["zensical", "build", "--strict"], tmp_path)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "MissingExtraError" in (tmp_path / "site" / "index.html").read_text()
    assert environment.run(["python", "-c", "import latex2mathml.converter, matplotlib"], tmp_path).returncode == 0


def test_dev_can_be_resolved(wheel, core):
    """Its packages can be installed together."""
    assert "Would install" in core.pip("install", "--dry-run", f"{wheel}[dev]")


# The lab, a second distribution. Its benchmarks and experiments need extras of both.


@pytest.fixture
def lab(request, wheel, tmp_path):
    """An environment with limpet and an extra of limpet-lab."""
    build_distribution(ROOT / "lab", tmp_path / "dist", "--wheel")
    (lab_wheel,) = (tmp_path / "dist").glob("*.whl")
    venv = make_environment(tmp_path / "env", wheel, extra_packages=(f"{lab_wheel}[{request.param}]",))
    yield venv
    shutil.rmtree(venv.folder)


@pytest.mark.parametrize("lab", ["bench"], indirect=True)
def test_lab_bench(lab, tmp_path):
    completed = lab.run(["limpet", "bench", "--quick", "speed"], tmp_path, LIMPET_QUIET="1", COLUMNS="200")
    assert (completed.returncode, "ADWIN" in completed.stdout) == (0, True), completed.stderr[-3000:]
    script = "from limpet_lab.baselines import timing; print(*(baseline.name for baseline in timing.make_baselines()))"
    assert "LODA" in lab.run(["python", "-c", script], tmp_path).stdout
    for name, message in (("jetstream", "tests/harness"), ("adapters", "pip install 'limpet[river,sklearn,sktime]'")):
        completed = lab.run(["limpet", "bench", name], tmp_path)
        assert (completed.returncode, completed.stderr.count("\n"), message in completed.stderr) == (2, 1, True), (
            completed.stderr[-3000:]
        )
    completed = lab.run(["limpet", "reproduce", "--quick"], tmp_path)
    assert (completed.returncode, completed.stderr.count("\n")) == (2, 1)
    assert "pip install 'limpet-lab[reproduce]'" in completed.stderr


@pytest.mark.parametrize("lab", ["reproduce"], indirect=True)
def test_lab_reproduce(lab, tmp_path):
    completed = lab.run(
        ["limpet", "reproduce", "--quick", "sample_streams", "--out", "out"], tmp_path, LIMPET_QUIET="1"
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    assert (tmp_path / "out" / "report.html").is_file()
