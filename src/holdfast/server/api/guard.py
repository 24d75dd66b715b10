"""Stands around everything else: lets in who may come in, bounds what is sent, and tells browsers what they may do."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server.api.answers import refusal
from holdfast.server.api.door import Door
from holdfast.server.errors import Refused

log = logging.getLogger("holdfast.server")
MEGABYTE = 1 << 20
HEADERS = {
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


class Guard:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path, begun = Headers(scope=scope), scope["path"], False
        too_large: list[Refused] = []

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if too_large:
                return
            if message["type"] == "http.response.start":
                begun = True
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
                own.setdefault("Cache-Control", "no-cache" if path.startswith("/static/") else "no-store")
            await send(message)

        try:
            self.door.check((scope.get("client") or ("", 0))[0], scope["method"], path, headers)
            await self.app(scope, self._limited(path, headers, receive, too_large), with_headers)
            if too_large:  # whatever was made of that further in
                raise too_large.pop()
        except Refused as refused:  # also from within, when a body turns out too large
            if begun:
                raise
            await refusal(refused)(scope, receive, with_headers)
        except Exception:
            log.exception("%s %r could not be answered", scope["method"], path)
            if begun:
                raise
            error = Refused("internal", "something went wrong here; the log says what")
            await refusal(error)(scope, receive, with_headers)

    def _limited(self, path: str, headers: Headers, receive: Receive, told: list[Refused]) -> Receive:
        """The body, as long as it is not too large; if it is, that is told as well."""
        rules = self.door.rules
        most = rules.file if path.startswith("/explore/data") else rules.body
        limit, so_far = int(most * MEGABYTE), 0
        too_large = Refused("too_large", f"a body has at most {most:g} MB here", headers={"Connection": "close"})
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise too_large

        async def limited() -> Message:
            nonlocal so_far
            message = await receive()
            if message["type"] == "http.request":
                so_far += len(message.get("body", b""))
                if so_far > limit:
                    told.append(too_large)
                    raise too_large
            return message

        return limited
