"""Alarms to a webhook, POSTed as JSON by a background thread that retries."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from limpet._format import redact_url
from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError
from limpet.streams.results import ALARMS_TABLE, BatchResult
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset

if TYPE_CHECKING:
    import httpx

RETRY_STATUSES = {408, 425, 429}  # client errors that are temporary; all server errors are
METHOD_PRESERVING_REDIRECTS = {307, 308}  # other redirects turn a POST into a GET without a body
MAX_REDIRECTS = 5
MAX_RETRY_AFTER_S = 3600.0
MAX_RESPONSE_BYTES = 1 << 16
MAX_QUEUED_ALARMS = 10_000  # above it `write` blocks
WEBHOOK_BATCH_ALARMS = 100  # per POST
log = logging.getLogger("limpet.streams")


@dataclass(frozen=True)
class _DeliveryResult:
    """The result of a POST: delivered, to be retried, or failed permanently."""

    delivered: bool
    should_retry: bool = False
    reason: str = ""
    retry_after_s: float | None = None


class WebhookSink(BaseSink):
    """POST ``{"run": …, "alarms": [{"id": …}, …]}``, alarms at least once, in order.

    Undelivered alarms are part of the checkpoint; after a crash some are sent again, with the same `id`, and a repeated
    POST has the same `Idempotency-Key`. Temporary errors are retried with exponential back-off between the two
    `retry_delays`, or after `Retry-After`; other alarms are logged as an error and counted in `n_failed`. The login of
    the URL is sent as Basic authorization and never logged, nor are path and query. All times are in seconds: `timeout`
    to connect and to wait for a response, `drain_timeout` that `drain` waits.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 10.0,
        drain_timeout: float = 5.0,
        retry_delays: tuple[float, float] = (0.5, 60.0),
    ) -> None:
        if not timeout > 0 or not drain_timeout >= 0:
            raise InvalidInputError(
                f"timeout, drain_timeout: must be above 0 and at least 0, got {timeout} and {drain_timeout}."
            )
        if not 0 < retry_delays[0] <= retry_delays[1]:
            raise InvalidInputError(f"retry_delays: must be positive and increasing, got {retry_delays}.")
        self._url, self._client = _open_client(url, timeout)
        self.redacted_url = f"{self._url.scheme}://{self._url.netloc.decode()}"
        self.name = f"alarms to {self.redacted_url}"
        self.drain_timeout, self.retry_delays = drain_timeout, retry_delays
        self.n_delivered = self.n_failed = 0
        self._outbox: deque[tuple[str, dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = self._is_stopping = self._is_drained = self._is_down = False

    def write(self, results: BatchResult) -> None:
        """Append the alarms to the outbox; block only while it is full."""
        run = results.run_id
        records = enumerate(results.alarm_records(), results.first_alarm)
        alarms = [(run, {"id": f"{run}-{number}", **record}) for number, record in records]
        with self._changed:
            while alarms and len(self._outbox) >= MAX_QUEUED_ALARMS and not self._is_stopping:
                self._changed.wait(0.5)
            self._enqueue(alarms)

    def flush(self) -> Any:
        """Return the undelivered alarms as the offset."""
        with self._changed:
            return make_offset(self, undelivered=[[run, alarm] for run, alarm in self._outbox])

    def truncate_to(self, offset: Any) -> None:
        """Restore the outbox; delivered alarms cannot be undone."""
        undelivered = () if offset is None else check_offset(self, offset)["undelivered"]
        with self._changed:
            self._outbox.clear()
            self._enqueue([(run, alarm) for run, alarm in undelivered])

    def stop_waiting(self) -> None:
        """Stop blocking in `write`. Safe in a signal handler."""
        self._is_stopping = True

    def drain(self) -> None:
        """Wait up to `drain_timeout` seconds for the outbox to become empty."""
        with self._changed:
            self._woken.set()  # retries at once
            self._changed.wait_for(lambda: not self._outbox, self.drain_timeout)
            self._is_drained = True

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """Alarms in the outbox, and those that failed permanently."""
        return len(self._outbox) + self.n_failed

    def close(self) -> None:
        """Drain if necessary, stop the thread, and log what is undelivered."""
        if not self._is_drained:
            self.drain()
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            n_left = len(self._outbox)
            self._changed.notify_all()
        self._woken.set()
        if n_left:
            log.error("%s: %d alarms are undelivered", self.redacted_url, n_left)

    def _enqueue(self, alarms: list[tuple[str, dict[str, Any]]]) -> None:
        self._outbox.extend(alarms)
        if alarms and self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="limpet-webhook", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _deliver(self) -> None:
        """Deliver groups of alarms until closed; the thread's function."""
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
                    if self._outbox and self._outbox[0] is item:  # not after `truncate_to`
                        self._outbox.popleft()
                self.n_delivered += len(sent) * outcome.delivered
                self.n_failed += len(sent) * (not outcome.delivered)
                self._changed.notify_all()

    def _send_with_retries(self, run: str, alarms: list[dict[str, Any]]) -> _DeliveryResult | None:
        """Return the final result; None if the sink is closed before."""
        # Sorted, since a checkpoint changes the order of keys, and the same POST must have the same Idempotency-Key.
        body = json.dumps({"run": run, "alarms": alarms}, default=str, sort_keys=True).encode()
        backoff_s = self.retry_delays[0]
        while not self._is_closed:
            outcome = post(self._client, self._url, body)
            self._log_outcome(outcome, len(alarms))
            if not outcome.should_retry:
                return outcome
            jittered_s = backoff_s * random.uniform(0.5, 1.0)
            delay_s = jittered_s if outcome.retry_after_s is None else outcome.retry_after_s
            backoff_s = min(2 * backoff_s, self.retry_delays[1])
            if self._woken.wait(max(delay_s, self.retry_delays[0] / 2)):
                self._woken.clear()
                backoff_s = self.retry_delays[0]
        return None

    def _log_outcome(self, outcome: _DeliveryResult, n: int) -> None:
        """Log one line when the endpoint goes down, and one when it is back."""
        if outcome.should_retry and not self._is_down:
            n_waiting = len(self._outbox)
            log.warning("%s is down (%s): %d alarms are queued", self.redacted_url, outcome.reason, n_waiting)
        if self._is_down and not outcome.should_retry:
            log.info("%s is back", self.redacted_url)
        self._is_down = outcome.should_retry
        if not outcome.delivered and not outcome.should_retry:
            log.error("%s refused %d alarms: %s", self.redacted_url, n, outcome.reason)


def _open_client(url: str, timeout: float) -> tuple[httpx.URL, httpx.Client]:
    """Return the URL after validation, and a client that sends its login."""
    with optional_import("a webhook", "webhook"):
        import httpx
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if not parsed.host or parsed.scheme not in ("http", "https") or re.search(r"\s", url):
        redacted_url = re.sub(r".*@", "…@", url.partition("?")[0])
        raise InvalidInputError(f"url: must be http://host/… or https://host/…, got {redacted_url!r}.")
    httpx_log = logging.getLogger("httpx")
    if httpx_log.level == logging.NOTSET:
        httpx_log.setLevel(logging.WARNING)  # it logs whole URLs as INFO, and the path of a webhook is often a secret
    client = httpx.Client(
        auth=(parsed.username, parsed.password) if parsed.userinfo else None,
        headers={"Content-Type": "application/json", "User-Agent": "limpet"},
        timeout=timeout,
        verify=ssl.create_default_context(),  # the certificates of the system
    )
    return parsed, client


def post(client: httpx.Client, url: httpx.URL, body: bytes) -> _DeliveryResult:
    """POST a body once, following redirects that keep the method and the host."""
    request = client.build_request("POST", url.copy_with(userinfo=b"", fragment=None), content=body)
    request.headers["Idempotency-Key"] = hashlib.sha256(body).hexdigest()[:32]
    try:
        for _ in range(MAX_REDIRECTS):
            response = client.send(request, stream=True)
            next(response.iter_raw(MAX_RESPONSE_BYTES), None)
            response.close()
            redirected = response.next_request
            if redirected is None or not _keeps_post_and_host(response.status_code, request.url, redirected.url):
                break
            request = redirected
    except Exception as error:  # the thread must not end
        return _DeliveryResult(False, True, (str(error) or type(error).__name__).splitlines()[0])
    status = response.status_code
    if response.is_success:
        return _DeliveryResult(True)
    redirect_note = ", a redirect that is not followed" if response.is_redirect else ""
    retry_after_s = parse_retry_after(response.headers.get("Retry-After"))
    should_retry = status in RETRY_STATUSES or status >= 500
    return _DeliveryResult(False, should_retry, f"status {status}{redirect_note}", retry_after_s)


def make_sink(url: str, *, table: str = ALARMS_TABLE) -> WebhookSink:
    """Open the webhook at a URL."""
    if table != ALARMS_TABLE:
        raise InvalidInputError(f"{redact_url(url)}: a webhook takes alarms, not points.")
    return WebhookSink(url)


def parse_retry_after(retry_after: str | None) -> float | None:
    """Return the delay in seconds of a Retry-After header, a number or a date.

    >>> parse_retry_after("17"), parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), parse_retry_after("soon")
    (17.0, 0.0, None)
    """
    text = (retry_after or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0), MAX_RETRY_AFTER_S)
    except (ValueError, TypeError, OverflowError):
        return None


def _keeps_post_and_host(status: int, old: httpx.URL, new: httpx.URL) -> bool:
    """Whether a redirect repeats the POST on the same host, or on https there."""
    is_same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port)
    is_upgrade = (old.scheme, old.host, new.scheme, new.port) == ("http", new.host, "https", None)
    return status in METHOD_PRESERVING_REDIRECTS and (is_same or is_upgrade)
