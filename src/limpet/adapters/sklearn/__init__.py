"""limpet in scikit-learn: estimators by its rules, that learn by `partial_fit`, too. Needs limpet[sklearn]."""

from limpet._optional import optional_import
from limpet.adapters.sklearn.linear_model import RobustClassifier, RobustRegressor
from limpet.adapters.sklearn.mixture import OnlineGaussianMixture
from limpet.adapters.sklearn.outlier_detection import OutlierDetector
from limpet.adapters.sklearn.transformer import StreamScores

with optional_import("limpet.adapters.sklearn", "sklearn"):
    import sklearn  # noqa: F401


__all__ = ["OnlineGaussianMixture", "OutlierDetector", "RobustClassifier", "RobustRegressor", "StreamScores"]
