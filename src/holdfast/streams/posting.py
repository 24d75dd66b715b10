"""One POST, and what came of it: delivered, to be tried again, or refused for good."""

from __future__ import annotations

import http.client
import re
import time
from base64 import b64encode
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from holdfast.errors import InvalidInputError

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
