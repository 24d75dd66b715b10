"""Every figure that limpet claims, measured on the machine at hand: `limpet bench`.

A benchmark is a module with a function `measure(quick)` that returns a list of `Figure`. Times are compared in one run,
as a ratio, best of several alternating rounds, because machines are noisy; a figure with a goal reports whether it was
reached. This module lists the benchmarks and imports nothing else; `runner` runs them.
"""

import sys
from pathlib import Path

_TESTS = Path(__file__).parents[4] / "tests"
if (_TESTS / "harness").is_dir() and str(_TESTS) not in sys.path:
    sys.path.append(str(_TESTS))  # benchmarks of the server, brokers and Spark start them by the launchers of the tests

DEFAULT_BENCHMARKS = {
    "speed": "time per point against river's ADWIN",
    "scaling": "cost and memory from 10^4 to 10^7 points",
    "startup": "imports, --help, the first call ever, a second process",
    "accuracy": "mean squared errors on the paper's synthetic streams",
}
# Only where they are named: minutes each.
SLOW_BENCHMARKS = {
    "auto_latency": "Detector's time per point against river's ADWIN",
    "robustness": "recovery after changes, stability under bursts of outliers",
    "real_streams": "anomalies of NAB, THYROID, SMTP and SKAB against baselines",
    "false_alarm_rate": "alarms on stable streams against the promised rate; an hour",
    "detection_delay": "points until a change alarm, against CUSUM and baselines",
    "compact_memory": 'memory="compact": bytes, times, alarms, delays',
    "fleet": "many streams: updates per second, bytes, files; 4 GB",
    "detect": "`limpet detect` on 10^7 rows: rows per second, memory",
    "watch_crash": "kill -9 at 50 moments of a watch, from a file and JetStream",
    "jetstream": "from JetStream to alarms: points per second, latency, memory",
    "serve": "the server: points per second, latency, 10^4 streams",
    "serve_crash": "kill -9 of the server under load at 38 moments",
    "spark": "on Spark: rows per second against a pass-through",
    "spark_crash": "kill -9 of a job on Spark at 14 moments",
    "adapters": "overhead of river's, scikit-learn's and sktime's",
    "regression": "regression on corrupted, drifting streams, against baselines",
    "runtime": "time per point against baselines, and its growth; 5 GB",
}
BENCHMARKS = DEFAULT_BENCHMARKS | SLOW_BENCHMARKS


def list_benchmarks(names: dict[str, str]) -> str:
    """Format a line for each benchmark.

    >>> print(list_benchmarks({"speed": "time per point", "scaling": "memory"}))
    speed         time per point
    scaling       memory
    """
    width = max(map(len, BENCHMARKS)) + 2
    return "\n".join(f"{name:{width}}{summary}" for name, summary in names.items())
