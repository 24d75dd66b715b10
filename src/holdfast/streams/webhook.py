"""Alarms to a webhook: POSTed as JSON by a thread of its own, and again until they have arrived."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
import threading
from collections import deque
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from holdfast.errors import BadInputError
from holdfast.streams.posting import Outcome, address_of, opener, post
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of

MOST = 10_000  # alarms that wait; then the stream waits, too
TOGETHER = 100  # alarms in a POST
log = logging.getLogger("holdfast.streams")


class Webhook(Sink):
    """POSTs alarms to an http or https address as `{"run": …, "alarms": [{"id": …, "kind": …, …}, …]}`.

    Each arrives at least once and in their order: what has not been delivered is kept in the checkpoint, and after a
    crash some are sent again, with the ids that they had. The same POST sent again has the same `Idempotency-Key`.
    While the other side cannot be reached, or answers 408, 425, 429 or 5xx, it is tried again after a while: twice as
    long each time, within the two `waits`, or as it says in `Retry-After`. Any other answer than 2xx is final: these
    alarms are logged as an error and counted in `refused`. Redirections are followed if they are 307 or 308 and stay on
    the host; any other is final, too.

    url: may hold user:password@, which is sent as Basic authorization and never logged. timeout: seconds an answer may
    take. patience: seconds that `drain` waits for what has not been delivered yet.
    """

    def __init__(
        self, url: str, *, timeout: float = 10.0, patience: float = 5.0, waits: tuple[float, float] = (0.5, 60.0)
    ) -> None:
        if not (timeout > 0 and patience >= 0 and 0 < waits[0] <= waits[1]):
            raise BadInputError(f"a webhook has times above 0, got {timeout}, {patience} and {waits}")
        self.address, self.timeout, self.patience, self.waits = address_of(url), timeout, patience, waits
        self.name = f"alarms to {self.address.shown}"
        self.delivered = self.refused = 0
        self._outbox: deque[tuple[str, dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._woken = threading.Event()
        self._opener = opener()
        self._thread: threading.Thread | None = None
        self._closed = self._hurried = self._drained = self._is_down = False

    def write(self, results: Results) -> None:
        """The alarms are put into the outbox. Waits only if it is full."""
        first = results.first_alarm
        alarms = [
            (results.run, {"id": f"{results.run}-{first + i}", **_as_json(row)})
            for i, row in enumerate(results.alarm_rows())
        ]
        with self._changed:
            while alarms and len(self._outbox) >= MOST and not self._hurried:
                self._changed.wait(0.5)
            self._put(alarms)

    def flush(self) -> Any:
        """The alarms that have not been delivered."""
        with self._changed:
            return mark_of(self, undelivered=[[run, alarm] for run, alarm in self._outbox])

    def rewind(self, mark: Any) -> None:
        """Those that had not been delivered are in the outbox again; what had been cannot be taken back."""
        undelivered = () if mark is None else parts_of(self, mark)["undelivered"]
        with self._changed:
            self._outbox.clear()
            self._put([(run, alarm) for run, alarm in undelivered])

    def hurry(self) -> None:
        """From now on `write` does not wait: for a stream that has to stop. A signal's handler may call it."""
        self._hurried = True

    def drain(self) -> None:
        """Waits a while for the outbox to become empty."""
        with self._changed:
            self._woken.set()  # tried at once, however long it would have waited
            self._changed.wait_for(lambda: not self._outbox, self.patience)
            self._drained = True

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """Alarms in the outbox, and those that were refused."""
        return len(self._outbox) + self.refused

    def close(self) -> None:
        """The same, unless that has been done, and logs what is left. `flush` still tells what that is."""
        if not self._drained:
            self.drain()
        with self._changed:
            if self._closed:
                return
            self._closed = True
            left = len(self._outbox)
            self._changed.notify_all()
        self._woken.set()
        if left:
            log.error("%s: %d alarms were not delivered to it", self.address.shown, left)

    def _put(self, alarms: list[tuple[str, dict[str, Any]]]) -> None:
        self._outbox.extend(alarms)
        if alarms and self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="holdfast-webhook", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _deliver(self) -> None:
        """What the thread does."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._outbox or self._closed)
                if self._closed:
                    return
                run, together = next(groupby(islice(self._outbox, TOGETHER), key=itemgetter(0)))
                sent = list(together)
            outcome = self._send_until_settled(run, [alarm for _, alarm in sent])
            if outcome is None:
                return
            with self._changed:
                for one in sent:
                    if self._outbox and self._outbox[0] is one:  # not so after `rewind`
                        self._outbox.popleft()
                self.delivered += len(sent) * outcome.delivered
                self.refused += len(sent) * (not outcome.delivered)
                self._changed.notify_all()

    def _send_until_settled(self, run: str, alarms: list[dict[str, Any]]) -> Outcome | None:
        """The outcome, once it is final; None if this was closed before."""
        # In the order of their names: that of a checkpoint is another, and the same POST is to have the same key.
        body = json.dumps({"run": run, "alarms": alarms}, default=str, sort_keys=True).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "holdfast",
            "Idempotency-Key": hashlib.sha256(body).hexdigest()[:32],
        }
        pause = self.waits[0]
        while not self._closed:
            try:
                outcome = post(self._opener, self.address, body, headers, self.timeout)
            except Exception as error:  # a thread that ends would keep all alarms back for good
                outcome = Outcome(False, True, f"{type(error).__name__}: {error}")
            self._tell(outcome, len(alarms))
            if not outcome.again:
                return outcome
            told = outcome.rest if outcome.rest is not None else pause * random.uniform(0.5, 1.0)
            pause = min(2 * pause, self.waits[1])
            if self._woken.wait(max(told, self.waits[0] / 2)):
                self._woken.clear()
                pause = self.waits[0]
        return None

    def _tell(self, outcome: Outcome, n: int) -> None:
        """One line when the other side is down, and one when it is back."""
        if outcome.again and not self._is_down:
            waiting = len(self._outbox)
            log.warning("%s is down (%s): %d alarms wait until it is back", self.address.shown, outcome.why, waiting)
        if self._is_down and not outcome.again:
            log.info("%s is back", self.address.shown)
        self._is_down = outcome.again
        if not outcome.delivered and not outcome.again:
            log.error("%s refuses %d alarms: %s", self.address.shown, n, outcome.why)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    """What is no number for JSON is null."""
    return {name: None if isinstance(one, float) and not math.isfinite(one) else one for name, one in row.items()}
