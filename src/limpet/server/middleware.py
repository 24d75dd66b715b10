"""Stands around everything else: lets in who may come in, bounds what is sent, and tells browsers what they may do."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limpet.server.errors import ApiError
from limpet.server.responses import error_response
from limpet.server.security import RequestGuard

log = logging.getLogger("limpet.server")
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


class SecurityMiddleware:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, request_guard: RequestGuard) -> None:
        self.app, self.request_guard = app, request_guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
            if too_large:  # whatever was made of that further in
                raise too_large.pop()
        except ApiError as refused:  # also from within, when a body turns out too large
            if response_started:
                raise
            await error_response(refused)(scope, receive, send_with_headers)
        except Exception:
            log.exception("%s %r could not be answered", scope["method"], path)
            if response_started:
                raise
            error = ApiError("internal", "something went wrong here; the log says what")
            await error_response(error)(scope, receive, send_with_headers)

    def _limit_body(self, path: str, headers: Headers, receive: Receive, errors: list[ApiError]) -> Receive:
        """The body, as long as it is not too large; if it is, that is told as well."""
        config = self.request_guard.config
        max_mb = config.max_file_mb if path.startswith("/explore/data") else config.max_body_mb
        max_bytes, n_bytes = int(max_mb * BYTES_PER_MB), 0
        too_large = ApiError("too_large", f"a body has at most {max_mb:g} MB here", headers={"Connection": "close"})
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > max_bytes:
            raise too_large

        async def receive_limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            if message["type"] == "http.request":
                n_bytes += len(message.get("body", b""))
                if n_bytes > max_bytes:
                    errors.append(too_large)
                    raise too_large
            return message

        return receive_limited
