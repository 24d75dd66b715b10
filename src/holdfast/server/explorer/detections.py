"""Where a change detector has found a change: its scores tell, each in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.detectors import ADWIN, KSWIN, RiverPageHinkley
from holdfast.detectors.base import Detector
from holdfast.scheme.state import Vector
from holdfast.server.explorer.looked_at import ExplorerDataset

Flags = npt.NDArray[np.bool_]


def to_detection_flags(detector: Detector, scores: Vector) -> Flags | None:
    """For each point and variable whether it is a detection; None for a detector without a rule for that."""
    if isinstance(detector, ADWIN):
        return np.column_stack([_window_cuts(column) for column in scores.T])
    if isinstance(detector, KSWIN):
        alarming = detector._score_table[detector._critical_gap :]
        flags: Flags = scores >= (alarming[0] if len(alarming) else np.inf)
        return flags
    if isinstance(detector, RiverPageHinkley):
        return np.asarray(scores > detector.threshold)
    return None


def _window_cuts(scores: Vector) -> Flags:
    """Where the window did not grow. The point after a cut starts anew, which is no second detection."""
    flags = np.zeros(len(scores), bool)
    valid = np.flatnonzero(~np.isnan(scores))
    shrunk = scores[valid] > -1.0
    shrunk[1:] &= ~shrunk[:-1]
    flags[valid[shrunk]] = True
    return flags


def detections_to_records(flags: Flags, data: ExplorerDataset) -> list[dict[str, Any]]:
    """Detections as the page has alarms: one for each row, with the variables that have changed."""
    records = []
    for row in np.flatnonzero(flags.any(axis=1)).tolist():
        names = [name for name, is_detected in zip(data.names, flags[row], strict=True) if is_detected]
        time = None if data.times is None else data.times[row]
        records.append(
            {
                "kind": "change",
                "row": row,
                "onset": row,
                "size": None,
                "direction": "detected",
                "variables": names,
                "p_value": None,
                "time": time,
                "onset_time": time,
                "message": f"a change of {', '.join(names)} is detected at row {row:,}",
            }
        )
    return records
