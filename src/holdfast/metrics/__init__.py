"""How well changes and anomalies are found and parameters followed: areas under curves, and errors by segment."""

from holdfast.metrics.benefit import BenefitCurve, benefit_auc, benefit_roc
from holdfast.metrics.matching import match_components
from holdfast.metrics.movement import MeanShift, largest_mean_shift
from holdfast.metrics.mse import SegmentMSE, segment_mse
from holdfast.metrics.nab import detection_auc, drop_probation, hit_curve, nab_score, rank_onset, running_rank
from holdfast.metrics.ranking import roc_auc, roc_auc_interval

__all__ = [
    "BenefitCurve",
    "MeanShift",
    "SegmentMSE",
    "benefit_auc",
    "benefit_roc",
    "detection_auc",
    "drop_probation",
    "hit_curve",
    "largest_mean_shift",
    "match_components",
    "nab_score",
    "rank_onset",
    "roc_auc",
    "roc_auc_interval",
    "running_rank",
    "segment_mse",
]
