"""What the user of a fleet should be told, once."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from holdfast.fleet.roster import Roster
from holdfast.learners.warnings import LOCKED_OUT, Teller
from holdfast.scheme.algorithm import REJECTED, UNUSABLE
from holdfast.scheme.state import RUN


class FleetTeller:
    """Remembers what has been told."""

    def __init__(self) -> None:
        self._teller = Teller()
        self._dropped = 0  # points, since the streams were looked at

    def is_told_elsewhere(self, topic: str) -> None:
        """No warning on this topic."""
        self._teller.told.add(topic)

    def look_at(self, fates: npt.NDArray[np.int8], rescues: bool, roster: Roster) -> None:
        """What there is to say about a call, and about the streams. rescues: whether they get out of a lock-out."""
        n_bad = int(np.count_nonzero(fates == UNUSABLE))
        if n_bad:
            first = int((fates == UNUSABLE).argmax())
            self._tell(
                "bad",
                f"{n_bad} of {len(fates)} points could not be used or had no key, the first of them row {first}: "
                "they were skipped; further ones are only counted, in counts() and n_keyless",
            )
        if not rescues and "locked out" not in self._teller.told:
            self._dropped += int(np.count_nonzero(fates == REJECTED))
            if self._dropped >= max(len(roster.keys), LOCKED_OUT):  # so that looking costs little for each point
                self._dropped = 0
                self._look_for_lock_outs(roster)

    def _look_for_lock_outs(self, roster: Roster) -> None:
        locked = np.flatnonzero(roster.store.states[: roster.keys.n_rows, RUN] >= LOCKED_OUT)
        if len(locked):
            self._tell(
                "locked out",
                f"{len(locked)} of {len(roster.keys)} streams, such as {roster.keys.of_row(int(locked[0]))!r}, have "
                f"dropped their last {LOCKED_OUT} points and more: they have moved beyond the threshold, and no longer "
                "learn. A larger gamma would follow them; the autopilot, SRA() without gamma and rho, gets out by "
                "itself. counts() has how many points each has dropped in a row",
            )

    def _tell(self, topic: str, message: str) -> None:
        """A warning, placed at the line that called the fleet."""
        depth = 1
        while (sys._getframe(depth).f_globals.get("__name__") or "").startswith("holdfast."):
            depth += 1
        self._teller.tell(topic, message, depth + 2)
