"""What the user of a fleet should be told, once."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from holdfast.fleet.roster import Membership
from holdfast.learners.warnings import LOCK_OUT_POINTS, WarningOnce
from holdfast.scheme.algorithm import OUTCOME_INVALID, OUTCOME_REJECTED
from holdfast.scheme.state import CONSECUTIVE_REJECTIONS


class FleetWarnings:
    """Remembers what has been told."""

    def __init__(self) -> None:
        self._warnings = WarningOnce()
        self._n_rejected = 0  # points, since the streams were looked at

    def suppress(self, topic: str) -> None:
        """No warning on this topic."""
        self._warnings.issued_topics.add(topic)

    def check_outcomes(self, outcomes: npt.NDArray[np.int8], self_recovering: bool, membership: Membership) -> None:
        """What there is to say about a call, and about the streams. rescues: whether they get out of a lock-out."""
        n_invalid = int(np.count_nonzero(outcomes == OUTCOME_INVALID))
        if n_invalid:
            first = int((outcomes == OUTCOME_INVALID).argmax())
            self._warn(
                "invalid",
                f"{n_invalid} of {len(outcomes)} points could not be used or had no key, the first of them row {first}: "
                "they were skipped; further ones are only counted, in counts() and n_missing_keys",
            )
        if not self_recovering and "locked out" not in self._warnings.issued_topics:
            self._n_rejected += int(np.count_nonzero(outcomes == OUTCOME_REJECTED))
            if self._n_rejected >= max(
                len(membership.key_index), LOCK_OUT_POINTS
            ):  # so that looking costs little for each point
                self._n_rejected = 0
                self._check_lock_outs(membership)

    def _check_lock_outs(self, membership: Membership) -> None:
        locked_out = np.flatnonzero(
            membership.state_matrix.states[: membership.key_index.n_rows, CONSECUTIVE_REJECTIONS] >= LOCK_OUT_POINTS
        )
        if len(locked_out):
            self._warn(
                "locked out",
                f"{len(locked_out)} of {len(membership.key_index)} streams, such as {membership.key_index.get_key(int(locked_out[0]))!r}, have "
                f"dropped their last {LOCK_OUT_POINTS} points and more: they have moved beyond the threshold, and no longer "
                "learn. A larger gamma would follow them; the autopilot, SRA() without gamma and rho, gets out by "
                "itself. counts() has how many points each has dropped in a row",
            )

    def _warn(self, topic: str, message: str) -> None:
        """A warning, placed at the line that called the fleet."""
        depth = 1
        while (sys._getframe(depth).f_globals.get("__name__") or "").startswith("holdfast."):
            depth += 1
        self._warnings.warn_once(topic, message, depth + 2)
