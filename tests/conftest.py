"""Settings of the whole suite."""

import os

from hypothesis import HealthCheck, settings

os.environ["HOLDFAST_QUIET"] = "1"

# Compiling takes seconds, so there is no deadline; the same examples in every run, so that a failure can be repeated.
settings.register_profile(
    "holdfast", deadline=None, derandomize=True, max_examples=10, suppress_health_check=list(HealthCheck)
)
settings.load_profile("holdfast")
