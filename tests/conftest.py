"""Settings of the whole suite."""

import contextlib
import gc
import os
import shutil

import pytest
from hypothesis import HealthCheck, settings
from numba.core import event

os.environ["LIMPET_QUIET"] = "1"

# Compiling takes seconds, hence no deadline; each run uses the same examples, so that a failure can be reproduced.
settings.register_profile(
    "limpet", deadline=None, derandomize=True, max_examples=10, suppress_health_check=list(HealthCheck)
)
settings.load_profile("limpet")


class PauseGarbageCollection(event.Listener):
    """Pause garbage collection during compilation, which creates millions of objects that are kept."""

    depth = 0

    def on_start(self, event):
        self.depth += 1
        gc.disable()

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            gc.enable()


event.register("numba:compile", PauseGarbageCollection())


def pytest_collection_finish():
    """Exclude the collected tests and their imports from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres():
    """The URL of a temporary PostgreSQL server."""
    from harness.postgres import available, running

    if not available():
        pytest.skip("PostgreSQL is not installed")
    with running() as url:
        yield url


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def location(request, tmp_path):
    """The location of an empty database for the server."""
    from harness.postgres import new_database

    sqlite = str(tmp_path / "store.db")
    return sqlite if request.param == "SQLite" else new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def start(location):
    """Start monitors on the database; stop at the end those that still run."""
    from helpers.monitor import Monitor

    with contextlib.ExitStack() as monitors:

        def start_monitor(**fields):
            monitor = Monitor(location, **fields)
            monitors.callback(monitor.stop)
            return monitor

        yield start_monitor


@pytest.fixture(scope="session")
def spark():
    """One session of Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        fail_or_skip = pytest.fail if "CI" in os.environ else pytest.skip
        fail_or_skip("Spark needs Java: apt-get install openjdk-17-jre-headless")
    from limpet.spark import session

    session = session(2, spark_driver_memory="2g")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def distribution(tmp_path_factory):
    """The folder with sdist and wheel, built from a clean copy of the sources: the wheel from the sdist."""
    from helpers.packages import build_distribution, export_sources

    folder = tmp_path_factory.mktemp("distribution")
    build_distribution(export_sources(folder / "sources"), folder / "dist")
    return folder / "dist"


@pytest.fixture(scope="session")
def wheel(distribution):
    """The wheel."""
    (path,) = distribution.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def core(tmp_path_factory, wheel):
    """An environment with limpet and no extras."""
    from helpers.packages import make_environment

    return make_environment(tmp_path_factory.mktemp("core") / "env", wheel)
