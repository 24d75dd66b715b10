"""From points to decisions: alarms at a promised false-alarm rate."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.alarms.alarm import Alarm

if TYPE_CHECKING:
    from holdfast.alarms.detector import ChangeDetector, change_detector, log_threshold
    from holdfast.alarms.story import ChangeReport

__all__ = ["Alarm", "ChangeDetector", "ChangeReport", "change_detector", "log_threshold"]


def __getattr__(name: str) -> Any:
    """Imports the detector when it is first used: whoever only reads alarms does not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module 'holdfast.alarms' has no attribute {name!r}")
    return getattr(import_module(f"holdfast.alarms.{'story' if name == 'ChangeReport' else 'detector'}"), name)
