"""Who may ask, and how often."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from holdfast.server.errors import Refused

COOKIE = "holdfast"
PUBLIC = ("/", "/explorer", "/api", "/health", "/session", "/favicon.ico")  # pages hold no data
SAFE = ("GET", "HEAD", "OPTIONS")
GUESSES = 10.0  # wrong tokens of an address at once, and one more every five seconds


@dataclass(frozen=True)
class Rules:
    """token: asked for, if there is one; without it only names of this machine are answered to.

    rate: requests a second of one address. body: megabytes that may be sent at once; a file to explore may be larger.
    """

    token: str | None = None
    rate: float = 1000.0
    body: float = 8.0
    file: float = 32.0

    def session(self) -> str:
        """What the cookie of somebody holds who knows the token."""
        return hmac.new((self.token or "").encode(), b"holdfast session", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether this is the token, found out in a time that does not depend on what was given."""
        digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (given, self.token or ""))
        return self.token is not None and hmac.compare_digest(*digests)


class Buckets:
    """How many requests each address may make: so many a second, and a burst of two seconds' worth.

    >>> few = Buckets(rate=1.0)
    >>> [few.take("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [True, True, False, True]
    """

    MOST = 10_000  # addresses that are remembered

    def __init__(self, rate: float, burst: float | None = None) -> None:
        self.rate, self.burst = rate, 2.0 * rate if burst is None else burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now: float | None = None) -> bool:
        """Whether there is one more for this address."""
        now = time.monotonic() if now is None else now
        left, since = self._left.get(address, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        self._left[address] = (left - 1.0 if left >= 1.0 else left, now)
        self._left.move_to_end(address)
        if len(self._left) > self.MOST:
            self._left.popitem(last=False)
        return left >= 1.0


class Door:
    """Looks at who asks, before anything is done."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._requests, self._guesses = Buckets(rules.rate), Buckets(0.2, GUESSES)

    def check(self, address: str, method: str, path: str, headers: Headers) -> None:
        """Refuses a request that may not come in."""
        if not self._requests.take(address):
            raise Refused("too_many_requests", "too many requests: wait a second", headers={"Retry-After": "1"})
        if self.rules.token is None and not is_loopback(host_in(headers.get("host", ""))):
            raise Refused("wrong_host", "without a token this server answers to names of its own machine only")
        self._check_origin(method, headers)
        if self.rules.token is not None and path not in PUBLIC and not path.startswith("/static/"):
            self._check_token(address, headers)

    def _check_origin(self, method: str, headers: Headers) -> None:
        """Other sites that somebody visits may not use his browser to ask here."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        from_elsewhere = site == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        if origin is not None and method not in SAFE and _place_of(origin) != headers.get("host"):
            from_elsewhere = True
        if from_elsewhere:
            raise Refused("wrong_origin", "requests from other sites are not answered")

    def _check_token(self, address: str, headers: Headers) -> None:
        given = headers.get("authorization")
        if given is None:
            if not self.has_session(headers):
                raise Refused("unauthorised", "a token is needed", headers={"WWW-Authenticate": "Bearer"})
            return
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not self.rules.is_token(token.strip()):
            self.refuse_guess(address)

    def has_session(self, headers: Headers) -> bool:
        """Whether the cookie of a login is there."""
        given = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.rules.session().encode())

    def refuse_guess(self, address: str) -> None:
        """A wrong token; who guesses often has to wait."""
        if not self._guesses.take(address):
            raise Refused("too_many_requests", "too many wrong tokens: wait", headers={"Retry-After": "5"})
        raise Refused("unauthorised", "this is not the token", headers={"WWW-Authenticate": "Bearer"})


def _place_of(origin: str) -> str | None:
    """Host and port of an origin; None for what is none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def host_in(header: str) -> str:
    """The name in a Host header, without the port.

    >>> host_in("localhost:8000"), host_in("[::1]:8000"), host_in("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    name, _, port = header.rpartition(":")
    return (name if name and port.isdecimal() else header).strip("[]").lower()


def is_loopback(host: str) -> bool:
    """Whether this is a name of this machine that nobody else can reach.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("127.example.org")
    (True, True, False, False)
    """
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:  # any other name may be that of somewhere else
        return False
