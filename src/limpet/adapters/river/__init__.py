"""limpet in river: an anomaly detector and a drift detector by river's conventions. Needs limpet[river]."""

from limpet._optional import optional_import
from limpet.adapters.river.anomaly import AnomalyDetector
from limpet.adapters.river.drift import DriftDetector

with optional_import("limpet.adapters.river", "river"):
    import river  # noqa: F401


__all__ = ["AnomalyDetector", "DriftDetector"]
