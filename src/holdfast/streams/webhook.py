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

from holdfast.errors import InvalidInputError
from holdfast.streams.posting import DeliveryResult, make_opener, parse_webhook_url, post
from holdfast.streams.results import BatchResult
from holdfast.streams.sink import Sink, check_offset, make_offset

MAX_QUEUED_ALARMS = 10_000  # alarms that wait; then the stream waits, too
WEBHOOK_BATCH_ALARMS = 100  # alarms in a POST
log = logging.getLogger("holdfast.streams")


class WebhookSink(Sink):
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
        self, url: str, *, timeout: float = 10.0, patience: float = 5.0, retry_delays: tuple[float, float] = (0.5, 60.0)
    ) -> None:
        if not (timeout > 0 and patience >= 0 and 0 < retry_delays[0] <= retry_delays[1]):
            raise InvalidInputError(f"a webhook has times above 0, got {timeout}, {patience} and {retry_delays}")
        self.target, self.timeout, self.patience, self.retry_delays = (
            parse_webhook_url(url),
            timeout,
            patience,
            retry_delays,
        )
        self.name = f"alarms to {self.target.redacted_url}"
        self.n_delivered = self.n_failed = 0
        self._outbox: deque[tuple[str, dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._woken = threading.Event()
        self._opener = make_opener()
        self._thread: threading.Thread | None = None
        self._is_closed = self._is_stopping = self._is_drained = self._is_down = False

    def write(self, results: BatchResult) -> None:
        """The alarms are put into the outbox. Waits only if it is full."""
        first = results.first_alarm
        alarms = [
            (results.run_id, {"id": f"{results.run_id}-{first + i}", **_to_json_safe(row)})
            for i, row in enumerate(results.alarm_records())
        ]
        with self._changed:
            while alarms and len(self._outbox) >= MAX_QUEUED_ALARMS and not self._is_stopping:
                self._changed.wait(0.5)
            self._enqueue(alarms)

    def flush(self) -> Any:
        """The alarms that have not been delivered."""
        with self._changed:
            return make_offset(self, undelivered=[[run, alarm] for run, alarm in self._outbox])

    def truncate_to(self, offset: Any) -> None:
        """Those that had not been delivered are in the outbox again; what had been cannot be taken back."""
        undelivered = () if offset is None else check_offset(self, offset)["undelivered"]
        with self._changed:
            self._outbox.clear()
            self._enqueue([(run, alarm) for run, alarm in undelivered])

    def stop_waiting(self) -> None:
        """From now on `write` does not wait: for a stream that has to stop. A signal's handler may call it."""
        self._is_stopping = True

    def drain(self) -> None:
        """Waits a while for the outbox to become empty."""
        with self._changed:
            self._woken.set()  # tried at once, however long it would have waited
            self._changed.wait_for(lambda: not self._outbox, self.patience)
            self._is_drained = True

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """Alarms in the outbox, and those that were refused."""
        return len(self._outbox) + self.n_failed

    def close(self) -> None:
        """The same, unless that has been done, and logs what is left. `flush` still tells what that is."""
        if not self._is_drained:
            self.drain()
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            left = len(self._outbox)
            self._changed.notify_all()
        self._woken.set()
        if left:
            log.error("%s: %d alarms were not delivered to it", self.target.redacted_url, left)

    def _enqueue(self, alarms: list[tuple[str, dict[str, Any]]]) -> None:
        self._outbox.extend(alarms)
        if alarms and self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="holdfast-webhook", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _deliver(self) -> None:
        """What the thread does."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._outbox or self._is_closed)
                if self._is_closed:
                    return
                run, group = next(groupby(islice(self._outbox, WEBHOOK_BATCH_ALARMS), key=itemgetter(0)))
                sent = list(group)
            outcome = self._send_with_retries(run, [alarm for _, alarm in sent])
            if outcome is None:
                return
            with self._changed:
                for item in sent:
                    if self._outbox and self._outbox[0] is item:  # not so after `rewind`
                        self._outbox.popleft()
                self.n_delivered += len(sent) * outcome.delivered
                self.n_failed += len(sent) * (not outcome.delivered)
                self._changed.notify_all()

    def _send_with_retries(self, run: str, alarms: list[dict[str, Any]]) -> DeliveryResult | None:
        """The outcome, once it is final; None if this was closed before."""
        # In the order of their names: that of a checkpoint is another, and the same POST is to have the same key.
        body = json.dumps({"run": run, "alarms": alarms}, default=str, sort_keys=True).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "holdfast",
            "Idempotency-Key": hashlib.sha256(body).hexdigest()[:32],
        }
        backoff_s = self.retry_delays[0]
        while not self._is_closed:
            try:
                outcome = post(self._opener, self.target, body, headers, self.timeout)
            except Exception as error:  # a thread that ends would keep all alarms back for good
                outcome = DeliveryResult(False, True, f"{type(error).__name__}: {error}")
            self._log_outcome(outcome, len(alarms))
            if not outcome.should_retry:
                return outcome
            delay_s = (
                outcome.retry_after_s if outcome.retry_after_s is not None else backoff_s * random.uniform(0.5, 1.0)
            )
            backoff_s = min(2 * backoff_s, self.retry_delays[1])
            if self._woken.wait(max(delay_s, self.retry_delays[0] / 2)):
                self._woken.clear()
                backoff_s = self.retry_delays[0]
        return None

    def _log_outcome(self, outcome: DeliveryResult, n: int) -> None:
        """One line when the other side is down, and one when it is back."""
        if outcome.should_retry and not self._is_down:
            waiting = len(self._outbox)
            log.warning(
                "%s is down (%s): %d alarms wait until it is back", self.target.redacted_url, outcome.reason, waiting
            )
        if self._is_down and not outcome.should_retry:
            log.info("%s is back", self.target.redacted_url)
        self._is_down = outcome.should_retry
        if not outcome.delivered and not outcome.should_retry:
            log.error("%s refuses %d alarms: %s", self.target.redacted_url, n, outcome.reason)


def _to_json_safe(row: dict[str, Any]) -> dict[str, Any]:
    """What is no number for JSON is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }
