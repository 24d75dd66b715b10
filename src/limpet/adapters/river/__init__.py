"""An anomaly detector and a drift detector with river's conventions.

Requires limpet[river].
"""

from limpet._optional import optional_import

with optional_import("limpet.adapters.river", "river"):
    from limpet.adapters.river.anomaly import AnomalyDetector
    from limpet.adapters.river.drift import DriftDetector


__all__ = ["AnomalyDetector", "DriftDetector"]
