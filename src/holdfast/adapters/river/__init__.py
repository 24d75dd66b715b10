"""holdfast in river: an anomaly detector and a drift detector by river's conventions. Needs holdfast[river]."""

from holdfast.extras import optional_import

with optional_import("holdfast.adapters.river", "river"):
    import river  # noqa: F401

from holdfast.adapters.river.anomaly import AnomalyDetector
from holdfast.adapters.river.drift import DriftDetector

__all__ = ["AnomalyDetector", "DriftDetector"]
