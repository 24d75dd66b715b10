"""holdfast learns from data streams in one pass: ignores outliers, follows changes, tells which is which."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast import alarms, datasets, detectors, metrics, models, scheme, streams, tradeoff, tuning
    from holdfast.alarms import Alarm
    from holdfast.fleet import Fleet, from_bytes, load
    from holdfast.learners import IEM, SDEM, SEM, SRA, Step, StochasticApproximation, Trace
    from holdfast.streams import run

__all__ = [
    "IEM",
    "SDEM",
    "SEM",
    "SRA",
    "Alarm",
    "Fleet",
    "Step",
    "StochasticApproximation",
    "Trace",
    "alarms",
    "datasets",
    "detectors",
    "from_bytes",
    "load",
    "metrics",
    "models",
    "run",
    "scheme",
    "streams",
    "tradeoff",
    "tuning",
]

_HOMES = {"Alarm": "alarms", "Fleet": "fleet", "from_bytes": "fleet", "load": "fleet", "run": "streams"}
_ROOMS = ("alarms", "datasets", "detectors", "metrics", "models", "scheme", "streams", "tradeoff", "tuning")


def __getattr__(name: str) -> Any:
    """Imports a part when it is first used: `import holdfast` and `holdfast --help` stay instant."""
    if name not in __all__:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    import gc

    collecting = gc.isenabled()
    gc.disable()  # a collection in the middle would walk through all that Numba has made: 20 ms
    try:
        home = name if name in _ROOMS else _HOMES.get(name, "learners")
        room = import_module(f"holdfast.{home}")
    finally:
        if collecting:
            gc.enable()
    globals()[name] = value = room if name in _ROOMS else getattr(room, name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
