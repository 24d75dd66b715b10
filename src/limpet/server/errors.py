"""What goes wrong between a client and the server, each kind by a code of its own."""

from __future__ import annotations

from typing import Any

from limpet.exceptions import InvalidInputError

STATUS_BY_CODE = {
    "malformed_json": 400,
    "bad_request": 400,
    "wrong_host": 400,
    "unauthorised": 401,
    "wrong_origin": 403,
    "not_found": 404,
    "unknown_stream": 404,
    "unknown_alarm": 404,
    "unknown_data": 404,
    "unknown_key": 404,
    "unknown_column": 404,
    "wrong_method": 405,
    "other_post": 409,
    "too_large": 413,
    "wrong_type": 415,
    "bad_key": 422,
    "bad_point": 422,
    "bad_time": 422,
    "wrong_width": 422,
    "unknown_variable": 422,
    "invalid": 422,
    "unreadable": 422,
    "too_many_columns": 422,
    "too_many_points": 413,
    "too_many_requests": 429,
    "too_many_streams": 429,
    "too_many_listeners": 429,
    "internal": 500,
    "store_unavailable": 503,
    "overloaded": 503,
    "stopping": 503,
}
"""The HTTP status of each code."""


class ApiError(InvalidInputError):
    """Something that a client asked for is not done; nothing of it was stored."""

    def __init__(self, code: str, message: str, details: Any = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.details, self.headers = code, details, headers or {}

    @property
    def status(self) -> int:
        """As HTTP has it."""
        return STATUS_BY_CODE[self.code]

    def to_dict(self) -> dict[str, Any]:
        """As clients get it."""
        return {"error": {"code": self.code, "message": str(self), "details": self.details}}
