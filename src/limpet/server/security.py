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

from limpet.server.errors import ApiError

COOKIE_NAME = "limpet"
PUBLIC_PATHS = ("/", "/explorer", "/api", "/health", "/session", "/favicon.ico")  # pages hold no data
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MAX_TOKEN_GUESSES = 10.0  # wrong tokens of an address at once, and one more every five seconds


@dataclass(frozen=True)
class SecurityConfig:
    """token: asked for, if there is one; without it only names of this machine are answered to.

    rate: requests a second of one address. body: megabytes that may be sent at once; a file to explore may be larger.
    """

    token: str | None = None
    max_requests_per_s: float = 1000.0
    max_body_mb: float = 8.0
    max_file_mb: float = 32.0

    def session_token(self) -> str:
        """What the cookie of somebody holds who knows the token."""
        return hmac.new((self.token or "").encode(), b"limpet session", hashlib.sha256).hexdigest()

    def is_token(self, candidate: str) -> bool:
        """Whether this is the token, found out in a time that does not depend on what was given."""
        digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (candidate, self.token or ""))
        return self.token is not None and hmac.compare_digest(*digests)


class TokenBucketLimiter:
    """How many requests each address may make: so many a second, and a burst of two seconds' worth.

    >>> few = Buckets(rate=1.0)
    >>> [few.take("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [True, True, False, True]
    """

    MAX_ADDRESSES = 10_000  # addresses that are remembered

    def __init__(self, rate: float, burst: float | None = None) -> None:
        self.rate, self.burst = rate, 2.0 * rate if burst is None else burst
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now: float | None = None) -> bool:
        """Whether there is one more for this address."""
        now = time.monotonic() if now is None else now
        tokens, updated_at = self._tokens.get(address, (self.burst, now))
        tokens = min(self.burst, tokens + (now - updated_at) * self.rate)
        self._tokens[address] = (tokens - 1.0 if tokens >= 1.0 else tokens, now)
        self._tokens.move_to_end(address)
        if len(self._tokens) > self.MAX_ADDRESSES:
            self._tokens.popitem(last=False)
        return tokens >= 1.0


class RequestGuard:
    """Looks at who asks, before anything is done."""

    def __init__(self, config: SecurityConfig) -> None:
        self.config = config
        self._requests, self._guesses = (
            TokenBucketLimiter(config.max_requests_per_s),
            TokenBucketLimiter(0.2, MAX_TOKEN_GUESSES),
        )

    def check(self, address: str, method: str, path: str, headers: Headers) -> None:
        """Refuses a request that may not come in."""
        if not self._requests.take(address):
            raise ApiError("too_many_requests", "too many requests: wait a second", headers={"Retry-After": "1"})
        if self.config.token is None and not is_loopback(parse_host(headers.get("host", ""))):
            raise ApiError("wrong_host", "without a token this server answers to names of its own machine only")
        self._check_origin(method, headers)
        if self.config.token is not None and path not in PUBLIC_PATHS and not path.startswith("/static/"):
            self._check_token(address, headers)

    def _check_origin(self, method: str, headers: Headers) -> None:
        """Other sites that somebody visits may not use his browser to ask here."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_cross_site = site == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        if origin is not None and method not in SAFE_METHODS and _parse_netloc(origin) != headers.get("host"):
            is_cross_site = True
        if is_cross_site:
            raise ApiError("wrong_origin", "requests from other sites are not answered")

    def _check_token(self, address: str, headers: Headers) -> None:
        authorization = headers.get("authorization")
        if authorization is None:
            if not self.has_session(headers):
                raise ApiError("unauthorised", "a token is needed", headers={"WWW-Authenticate": "Bearer"})
            return
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self.config.is_token(token.strip()):
            self.reject_token(address)

    def has_session(self, headers: Headers) -> bool:
        """Whether the cookie of a login is there."""
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE_NAME, "")
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self.config.session_token().encode())

    def reject_token(self, address: str) -> None:
        """A wrong token; who guesses often has to wait."""
        if not self._guesses.take(address):
            raise ApiError("too_many_requests", "too many wrong tokens: wait", headers={"Retry-After": "5"})
        raise ApiError("unauthorised", "this is not the token", headers={"WWW-Authenticate": "Bearer"})


def _parse_netloc(origin: str) -> str | None:
    """Host and port of an origin; None for what is none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def parse_host(header: str) -> str:
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
