"""Metrics of change detection, anomaly detection and estimates."""

from limpet.metrics.auc import BenefitCurve, benefit_auc, benefit_roc, roc_auc, roc_auc_interval
from limpet.metrics.mixture_error import MeanShift, SegmentMSE, largest_mean_shift, match_components, segment_mse
from limpet.metrics.nab import detection_auc, drop_probation, hit_curve, nab_score, rank_onset, running_rank

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
