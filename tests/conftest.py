"""Settings of the whole suite."""

import gc
import os

from hypothesis import HealthCheck, settings

os.environ["HOLDFAST_QUIET"] = "1"

# Compiling takes seconds, so there is no deadline; the same examples in every run, so that a failure can be repeated.
settings.register_profile(
    "holdfast", deadline=None, derandomize=True, max_examples=10, suppress_health_check=list(HealthCheck)
)
settings.load_profile("holdfast")

# Compiling makes millions of objects that stay: to look for garbage among them after every few hundred takes long.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish():
    """Thousands of tests and all that they import stay to the end, too."""
    gc.collect()
    gc.freeze()
