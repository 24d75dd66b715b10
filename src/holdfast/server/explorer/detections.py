"""Where a change detector has found a change: its scores tell, each in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.detectors import ADWIN, KSWIN, RiverPageHinkley
from holdfast.detectors.base import Detector
from holdfast.scheme.state import Vector
from holdfast.server.explorer.looked_at import LookedAt

Flags = npt.NDArray[np.bool_]


def detected(detector: Detector, scores: Vector) -> Flags | None:
    """For each point and variable whether it is a detection; None for a detector without a rule for that."""
    if isinstance(detector, ADWIN):
        return np.column_stack([_cuts(column) for column in scores.T])
    if isinstance(detector, KSWIN):
        alarming = detector._table[detector._critical :]
        found: Flags = scores >= (alarming[0] if len(alarming) else np.inf)
        return found
    if isinstance(detector, RiverPageHinkley):
        return np.asarray(scores > detector.threshold)
    return None


def _cuts(scores: Vector) -> Flags:
    """Where the window did not grow. The point after a cut starts anew, which is no second detection."""
    found = np.zeros(len(scores), bool)
    usable = np.flatnonzero(~np.isnan(scores))
    shrunk = scores[usable] > -1.0
    shrunk[1:] &= ~shrunk[:-1]
    found[usable[shrunk]] = True
    return found


def as_alarms(found: Flags, data: LookedAt) -> list[dict[str, Any]]:
    """Detections as the page has alarms: one for each row, with the variables that have changed."""
    told = []
    for row in np.flatnonzero(found.any(axis=1)).tolist():
        names = [name for name, here in zip(data.names, found[row], strict=True) if here]
        time = None if data.times is None else data.times[row]
        told.append(
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
    return told
