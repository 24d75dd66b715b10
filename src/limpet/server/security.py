"""Authentication, request limits and security headers."""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limpet.server.responses import ApiError, error_response

log = logging.getLogger("limpet.server")
COOKIE_NAME = "limpet"
PUBLIC_PATHS = ("/", "/explorer", "/api", "/health", "/session", "/favicon.ico")  # without data
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MAX_TOKEN_GUESSES = 10.0  # wrong tokens per address in a burst
TOKEN_GUESSES_PER_S = 0.2
BYTES_PER_MB = 1 << 20
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class SecurityConfig:
    """Access and limits of the server.

    Parameters
    ----------
    token : str, optional
        The token that requests must have. Without one, the server responds only to host names of this machine.
    max_requests_per_s : float
        Requests per second and address.
    max_body_mb, max_file_mb : float
        The size of a request body, and of a file for the explorer.
    """

    token: str | None = None
    max_requests_per_s: float = 1000.0
    max_body_mb: float = 8.0
    max_file_mb: float = 32.0

    @property
    def max_file_bytes(self) -> int:
        """The size of a file for the explorer, in bytes."""
        return int(self.max_file_mb * BYTES_PER_MB)

    def session_token(self) -> str:
        """Return the value of the session cookie."""
        return hmac.new((self.token or "").encode(), b"limpet session", hashlib.sha256).hexdigest()

    def is_token(self, candidate: str) -> bool:
        """Return whether this is the token, in constant time."""
        digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (candidate, self.token or ""))
        return self.token is not None and hmac.compare_digest(*digests)


class TokenBucketLimiter:
    """Limits requests per address to a rate, with bursts of two seconds of it.

    >>> limiter = TokenBucketLimiter(rate=1.0)
    >>> [limiter.take("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [True, True, False, True]
    """

    MAX_ADDRESSES = 10_000  # the address that was inactive for longest is evicted

    def __init__(self, rate: float, burst: float | None = None) -> None:
        self.rate, self.burst = rate, 2.0 * rate if burst is None else burst
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now: float | None = None) -> bool:
        """Return whether one more request is allowed from an address."""
        now = time.monotonic() if now is None else now
        tokens, updated_at = self._tokens.get(address, (self.burst, now))
        tokens = min(self.burst, tokens + (now - updated_at) * self.rate)
        self._tokens[address] = (tokens - 1.0 if tokens >= 1.0 else tokens, now)
        self._tokens.move_to_end(address)
        if len(self._tokens) > self.MAX_ADDRESSES:
            self._tokens.popitem(last=False)
        return tokens >= 1.0


class RequestGuard:
    """Checks a request before it is processed."""

    def __init__(self, config: SecurityConfig) -> None:
        self.config = config
        self._requests = TokenBucketLimiter(config.max_requests_per_s)
        self._guesses = TokenBucketLimiter(TOKEN_GUESSES_PER_S, MAX_TOKEN_GUESSES)

    def check(self, address: str, method: str, path: str, headers: Headers) -> None:
        """Raise an ApiError for a request that is not allowed."""
        if not self._requests.take(address):
            message = "requests: rate limit of this address exceeded. Retry after a second."
            raise ApiError("too_many_requests", message, {"Retry-After": "1"})
        if self.config.token is None and not is_loopback(parse_host(headers.get("host", ""))):
            raise ApiError("wrong_host", "Host: must be a name of this machine, because the server has no token.")
        self._check_origin(method, headers)
        if self.config.token is not None and path not in PUBLIC_PATHS and not path.startswith("/static/"):
            self._check_token(address, headers)

    def _check_origin(self, method: str, headers: Headers) -> None:
        """Refuse requests that other sites send through the browser of a user."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_cross_site = site == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        if origin is not None and method not in SAFE_METHODS:
            try:
                netloc = urlsplit(origin).netloc or None
            except ValueError:
                netloc = None
            is_cross_site |= netloc != headers.get("host")
        if is_cross_site:
            raise ApiError("wrong_origin", "Origin: requests from other sites are not allowed.")

    def _check_token(self, address: str, headers: Headers) -> None:
        if (authorization := headers.get("authorization")) is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer" or not self.config.is_token(token.strip()):
                self.refuse_token(address)
        elif not self.has_session(headers):
            raise ApiError("unauthorized", "Authorization: a token is required.")

    def has_session(self, headers: Headers) -> bool:
        """Return whether a request has a valid session cookie."""
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE_NAME, "")
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self.config.session_token().encode())

    def refuse_token(self, address: str) -> None:
        """Raise for a wrong token; after many of them the address must wait."""
        if not self._guesses.take(address):
            raise ApiError("too_many_requests", "token: too many wrong tokens. Retry later.", {"Retry-After": "5"})
        raise ApiError("unauthorized", "token: wrong token.")


class SecurityMiddleware:
    """Outermost layer: checks requests, limits bodies, adds headers, catches errors."""

    def __init__(self, app: ASGIApp, request_guard: RequestGuard) -> None:
        self.app, self.request_guard = app, request_guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path, response_started = Headers(scope=scope), scope["path"], False
        too_large: list[ApiError] = []

        async def send_with_headers(message: Message) -> None:
            nonlocal response_started
            if too_large:
                return
            if message["type"] == "http.response.start":
                response_started = True
                response_headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    response_headers.setdefault(name, value)
                response_headers.setdefault("Cache-Control", "no-cache" if path.startswith("/static/") else "no-store")
            await send(message)

        try:
            self.request_guard.check((scope.get("client") or ("", 0))[0], scope["method"], path, headers)
            await self.app(scope, self._limit_body(path, headers, receive, too_large), send_with_headers)
            if too_large:  # even if the app has handled it
                raise too_large.pop()
        except ApiError as error:  # also from the app, while it reads a body that is too large
            if response_started:
                raise
            await error_response(error)(scope, receive, send_with_headers)
        except Exception:
            log.exception("%s %r failed", scope["method"], path)
            if response_started:
                raise
            internal = ApiError("internal", "internal error; see the log of the server.")
            await error_response(internal)(scope, receive, send_with_headers)

    def _limit_body(self, path: str, headers: Headers, receive: Receive, errors: list[ApiError]) -> Receive:
        """Return a `receive` that records an error and raises if the body is too large."""
        config = self.request_guard.config
        is_file, n_bytes = path.startswith("/explore/data"), 0
        max_bytes = config.max_file_bytes if is_file else int(config.max_body_mb * BYTES_PER_MB)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > max_bytes:
            raise _too_large(max_bytes, is_file)

        async def receive_limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            if message["type"] == "http.request":
                n_bytes += len(message.get("body", b""))
                if n_bytes > max_bytes:
                    errors.append(_too_large(max_bytes, is_file))
                    raise errors[0]
            return message

        return receive_limited


def _too_large(max_bytes: int, is_file: bool) -> ApiError:
    subject, advice = ("file", " Use `limpet detect FILE` for larger ones.") if is_file else ("body", "")
    message = f"{subject}: must be at most {max_bytes / BYTES_PER_MB:g} MB.{advice}"
    return ApiError("too_large", message, {"Connection": "close"})


def parse_host(header: str) -> str:
    """Return the name in a Host header, without the port.

    >>> parse_host("localhost:8000"), parse_host("[::1]:8000"), parse_host("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    name, _, port = header.rpartition(":")
    return (name if name and port.isdecimal() else header).strip("[]").lower()


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback name or address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("127.example.org")
    (True, True, False, False)
    """
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name other than localhost may resolve to any address
        return False
