"""Learn from streams in one pass: reject outliers, follow changes, raise alarms."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limpet import core, datasets, detection, drift, exceptions, metrics, models, streams, testing, tradeoff, tuning
    from limpet.detection import Alarm
    from limpet.fleet import Fleet, from_bytes, load
    from limpet.learners import IEM, SDEM, SEM, SRA, Detector, Step, StochasticApproximation, Trace
    from limpet.streams import run


__version__ = "0.1.0"

__all__ = ["core", "datasets", "detection", "drift", "exceptions", "metrics", "models", "streams", "testing"]
__all__ += ["tradeoff", "tuning"]
_SUBPACKAGES = frozenset(__all__)
__all__ += ["IEM", "SDEM", "SEM", "SRA", "Detector", "Step", "StochasticApproximation", "Trace"]  # of limpet.learners
__all__ += ["Alarm", "Fleet", "from_bytes", "load", "run"]
_SUBPACKAGE_BY_NAME = {"Alarm": "detection", "Fleet": "fleet", "from_bytes": "fleet", "load": "fleet", "run": "streams"}


def __getattr__(name: str) -> Any:
    """Import a subpackage on first use, which keeps `import limpet` fast."""
    if name not in __all__:
        raise AttributeError(f"module 'limpet' has no attribute {name!r}")
    import gc

    gc_was_enabled = gc.isenabled()
    gc.disable()  # a collection during the import traverses all of Numba's objects: 20 ms
    try:
        subpackage = name if name in _SUBPACKAGES else _SUBPACKAGE_BY_NAME.get(name, "learners")
        module = import_module(f"limpet.{subpackage}")
    finally:
        if gc_was_enabled:
            gc.enable()
    globals()[name] = value = module if name in _SUBPACKAGES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
