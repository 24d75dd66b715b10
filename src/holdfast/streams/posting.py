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

from holdfast.errors import BadInputError

AGAIN = {408, 425, 429}  # statuses of the client's side that pass; those of the server's side all do
REPEATED = {307, 308}  # redirections after which a POST stays a POST
LONGEST_REST = 3600.0  # seconds: the other side may ask for more, and is asked again
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """Where to POST to: the address without a name and a password, these as a header, and what may be shown.

    >>> address = address_of("https://me:secret@example.org/hook?token=17")
    >>> address.url, address.shown, address.headers
    ('https://example.org/hook?token=17', 'https://example.org', {'Authorization': 'Basic bWU6c2VjcmV0'})
    """

    url: str
    shown: str  # no password, and neither path nor query, which often are as good as one
    headers: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What came of a POST. why: in words, if it was not delivered; rest: seconds that we are asked to wait."""

    delivered: bool
    again: bool = False
    why: str = ""
    rest: float | None = None


def address_of(url: str) -> Address:
    """An http or https address, taken to pieces."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in PORTS or re.search(r"[\x00-\x20\x7f-\U0010ffff]", url):
        shown = re.sub(r".*@", "…@", url.partition("?")[0])
        raise BadInputError(f"a webhook is http://host/… or https://host/… in plain characters, got {shown!r}")
    where = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    plain = parts._replace(netloc=where, fragment="")
    return Address(plain.geturl(), f"{parts.scheme}://{where}", headers)


class SameHost(HTTPRedirectHandler):
    """Follows a redirection only where it loses nothing and gives nothing away.

    That is 307 and 308, which ask for the same POST again, to the same host, or from http to https on it. 301, 302 and
    303 turn a POST into a GET that leaves the alarms behind; another host would be told the password.
    """

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """The POST again, or None, which leaves the answer as it is: refused."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        ports = [one.port or PORTS.get(one.scheme) for one in (old, new)]
        same = old.scheme == new.scheme and ports[0] == ports[1]
        upgraded = (old.scheme, new.scheme, ports[1]) == ("http", "https", 443)
        if code not in REPEATED or old.hostname != new.hostname or not (same or upgraded):
            return None
        again = Request(newurl, data=req.data, headers=dict(req.header_items()), method="POST")
        again.remove_header("Host")
        return again


def opener() -> OpenerDirector:
    """What POSTs are sent with; proxies as the environment says."""
    return build_opener(SameHost)


def post(by: OpenerDirector, address: Address, body: bytes, headers: dict[str, str], timeout: float) -> Outcome:
    """Sends a body once."""
    request = Request(address.url, data=body, headers=address.headers | headers, method="POST")
    try:
        with by.open(request, timeout=timeout) as answer:
            answer.read(1 << 16)
    except HTTPError as error:
        with error:
            again = error.code in AGAIN or error.code >= 500
            moved = ", a redirection that is not followed" if error.code < 400 else ""
            rest = seconds_of(error.headers.get("Retry-After"))
            return Outcome(False, again, f"it answered {error.code}{moved}", rest)
    except URLError as error:
        return Outcome(False, True, _told(error.reason))
    except (OSError, http.client.HTTPException) as error:
        return Outcome(False, True, _told(error))
    return Outcome(True)


def seconds_of(retry_after: str | None) -> float | None:
    """How long the other side asks us to wait: a number of seconds, or until a date.

    >>> seconds_of("17"), seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), seconds_of("soon"), seconds_of(None)
    (17.0, 0.0, None, None)
    """
    told = (retry_after or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", told):
        return min(float(told), LONGEST_REST)
    try:
        return min(max(parsedate_to_datetime(told).timestamp() - time.time(), 0.0), LONGEST_REST)
    except (ValueError, TypeError, OverflowError):
        return None


def _told(error: Any) -> str:
    """An error in a few words."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(words).splitlines()[0]
