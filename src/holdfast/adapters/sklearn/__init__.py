"""holdfast in scikit-learn: estimators by its rules, that learn by `partial_fit`, too. Needs holdfast[sklearn]."""

from holdfast.extras import optional_import

with optional_import("holdfast.adapters.sklearn", "sklearn"):
    import sklearn  # noqa: F401

from holdfast.adapters.sklearn.classifier import RobustClassifier
from holdfast.adapters.sklearn.mixture import OnlineGaussianMixture
from holdfast.adapters.sklearn.outliers import OutlierDetector
from holdfast.adapters.sklearn.regressor import RobustRegressor
from holdfast.adapters.sklearn.scores import StreamScores

__all__ = ["OnlineGaussianMixture", "OutlierDetector", "RobustClassifier", "RobustRegressor", "StreamScores"]
