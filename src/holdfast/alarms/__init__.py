"""From points to decisions: change alarms at a promised false-alarm rate."""

from holdfast.alarms.detector import ChangeDetector, change_detector, threshold_for
from holdfast.alarms.story import Change

__all__ = ["Change", "ChangeDetector", "change_detector", "threshold_for"]
