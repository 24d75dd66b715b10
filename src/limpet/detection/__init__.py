"""Decisions from scores: anomaly and change alarms at a given false-alarm rate."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from limpet.detection.alarm import Alarm

if TYPE_CHECKING:
    from limpet.detection.change_detector import ChangeDetector, log_threshold, make_change_detector
    from limpet.detection.localization import ChangeReport


__all__ = ["Alarm", "ChangeDetector", "ChangeReport", "log_threshold", "make_change_detector"]


def __getattr__(name: str) -> Any:
    """Import the change detector when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'limpet.detection' has no attribute {name!r}")
    return getattr(import_module("limpet.detection.change_detector"), name)
