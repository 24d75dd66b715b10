"""holdfast in sktime: detectors of change points and of anomalies, with `update`. Needs holdfast[sktime]."""

from holdfast.extras import optional_import

with optional_import("holdfast.adapters.sktime", "sktime"):
    import sktime  # noqa: F401

from holdfast.adapters.sktime.anomalies import AnomalyDetector
from holdfast.adapters.sktime.changes import ChangePointDetector

__all__ = ["AnomalyDetector", "ChangePointDetector"]
