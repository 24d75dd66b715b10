"""Settings of the whole suite."""

import gc
import os

from hypothesis import HealthCheck, settings
from numba.core import event

os.environ["HOLDFAST_QUIET"] = "1"

# Compiling takes seconds, so there is no deadline; the same examples in every run, so that a failure can be repeated.
settings.register_profile(
    "holdfast", deadline=None, derandomize=True, max_examples=10, suppress_health_check=list(HealthCheck)
)
settings.load_profile("holdfast")


class Undisturbed(event.Listener):
    """Compiling makes millions of objects that stay: to look for garbage among them again and again takes long."""

    depth = 0

    def on_start(self, event):
        self.depth += 1
        gc.disable()

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            gc.enable()


event.register("numba:compile", Undisturbed())


def pytest_collection_finish():
    """Thousands of tests and all that they import stay to the end, too."""
    gc.collect()
    gc.freeze()
