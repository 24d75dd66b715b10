"""Alarms to a webhook: POSTed as JSON by a thread of its own, and again until they have arrived."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import math
import random
import re
import threading
import time
from base64 import b64encode
from collections import deque
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from limpet.exceptions import InvalidInputError
from limpet.streams.results import BatchResult
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset

# One POST, and what came of it: delivered, to be tried again, or refused for good.

RETRY_STATUSES = {408, 425, 429}  # statuses of the client's side that pass; those of the server's side all do
POST_REDIRECT_STATUSES = {307, 308}  # redirections after which a POST stays a POST
MAX_RETRY_AFTER_S = 3600.0  # seconds: the other side may ask for more, and is asked again
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class WebhookTarget:
    """Where to POST to: the address without a name and a password, these as a header, and what may be shown.

    >>> address = address_of("https://me:secret@example.org/hook?token=17")
    >>> address.url, address.shown, address.headers
    ('https://example.org/hook?token=17', 'https://example.org', {'Authorization': 'Basic bWU6c2VjcmV0'})
    """

    url: str
    redacted_url: str  # no password, and neither path nor query, which often are as good as one
    headers: dict[str, str]


@dataclass(frozen=True)
class DeliveryResult:
    """What came of a POST. why: in words, if it was not delivered; rest: seconds that we are asked to wait."""

    delivered: bool
    should_retry: bool = False
    reason: str = ""
    retry_after_s: float | None = None


def parse_webhook_url(url: str) -> WebhookTarget:
    """An http or https address, taken to pieces."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in DEFAULT_PORTS or re.search(r"[\x00-\x20\x7f-\U0010ffff]", url):
        redacted_url = re.sub(r".*@", "…@", url.partition("?")[0])
        raise InvalidInputError(
            f"a webhook is http://host/… or https://host/… in plain characters, got {redacted_url!r}"
        )
    netloc = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    plain = parts._replace(netloc=netloc, fragment="")
    return WebhookTarget(plain.geturl(), f"{parts.scheme}://{netloc}", headers)


class SameHostRedirectHandler(HTTPRedirectHandler):
    """Follows a redirection only where it loses nothing and gives nothing away.

    That is 307 and 308, which ask for the same POST again, to the same host, or from http to https on it. 301, 302 and
    303 turn a POST into a GET that leaves the alarms behind; another host would be told the password.
    """

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """The POST again, or None, which leaves the answer as it is: refused."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        ports = [url.port or DEFAULT_PORTS.get(url.scheme) for url in (old, new)]
        same = old.scheme == new.scheme and ports[0] == ports[1]
        upgraded = (old.scheme, new.scheme, ports[1]) == ("http", "https", 443)
        if code not in POST_REDIRECT_STATUSES or old.hostname != new.hostname or not (same or upgraded):
            return None
        repeated = Request(newurl, data=req.data, headers=dict(req.header_items()), method="POST")
        repeated.remove_header("Host")
        return repeated


def make_opener() -> OpenerDirector:
    """What POSTs are sent with; proxies as the environment says."""
    return build_opener(SameHostRedirectHandler)


def post(
    opener_director: OpenerDirector, target: WebhookTarget, body: bytes, headers: dict[str, str], timeout: float
) -> DeliveryResult:
    """Sends a body once."""
    request = Request(target.url, data=body, headers=target.headers | headers, method="POST")
    try:
        with opener_director.open(request, timeout=timeout) as response:
            response.read(1 << 16)
    except HTTPError as error:
        with error:
            should_retry = error.code in RETRY_STATUSES or error.code >= 500
            redirect_note = ", a redirection that is not followed" if error.code < 400 else ""
            retry_after_s = parse_retry_after(error.headers.get("Retry-After"))
            return DeliveryResult(False, should_retry, f"it answered {error.code}{redirect_note}", retry_after_s)
    except URLError as error:
        return DeliveryResult(False, True, _describe_error(error.reason))
    except (OSError, http.client.HTTPException) as error:
        return DeliveryResult(False, True, _describe_error(error))
    return DeliveryResult(True)


def parse_retry_after(retry_after: str | None) -> float | None:
    """How long the other side asks us to wait: a number of seconds, or until a date.

    >>> seconds_of("17"), seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), seconds_of("soon"), seconds_of(None)
    (17.0, 0.0, None, None)
    """
    text = (retry_after or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0), MAX_RETRY_AFTER_S)
    except (ValueError, TypeError, OverflowError):
        return None


def _describe_error(error: Any) -> str:
    """An error in a few words."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(words).splitlines()[0]


MAX_QUEUED_ALARMS = 10_000  # alarms that wait; then the stream waits, too
WEBHOOK_BATCH_ALARMS = 100  # alarms in a POST
log = logging.getLogger("limpet.streams")


class WebhookSink(BaseSink):
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
            self._thread = threading.Thread(target=self._deliver, name="limpet-webhook", daemon=True)
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
            "User-Agent": "limpet",
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
