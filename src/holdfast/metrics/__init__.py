"""How well changes are found and parameters followed: benefit against false alarms, and errors by segment."""

from holdfast.metrics.benefit import BenefitCurve, benefit_auc, benefit_roc
from holdfast.metrics.matching import match_components
from holdfast.metrics.movement import Movement, largest_movement
from holdfast.metrics.mse import SegmentMSE, segment_mse

__all__ = [
    "BenefitCurve",
    "Movement",
    "SegmentMSE",
    "benefit_auc",
    "benefit_roc",
    "largest_movement",
    "match_components",
    "segment_mse",
]
