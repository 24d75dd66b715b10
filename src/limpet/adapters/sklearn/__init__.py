"""Estimators with scikit-learn's conventions, also for `partial_fit`.

Requires limpet[sklearn].
"""

from limpet._optional import optional_import

with optional_import("limpet.adapters.sklearn", "sklearn"):
    from limpet.adapters.sklearn.linear_model import RobustClassifier, RobustRegressor
    from limpet.adapters.sklearn.mixture import OnlineGaussianMixture
    from limpet.adapters.sklearn.outlier_detection import OutlierDetector, StreamScores

__all__ = ["OnlineGaussianMixture", "OutlierDetector", "RobustClassifier", "RobustRegressor", "StreamScores"]
