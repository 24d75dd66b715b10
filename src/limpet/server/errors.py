"""Errors of the API: a stable code for programs, a message for people, an HTTP status."""

from __future__ import annotations

from typing import Any

from limpet.exceptions import InvalidInputError

STATUS_BY_CODE = {
    "malformed_json": 400,
    "bad_request": 400,
    "wrong_host": 400,
    "unauthorized": 401,
    "wrong_origin": 403,
    "not_found": 404,
    "unknown_stream": 404,
    "unknown_alarm": 404,
    "unknown_data": 404,
    "unknown_key": 404,
    "unknown_column": 404,
    "method_not_allowed": 405,
    "idempotency_conflict": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "invalid_key": 422,
    "invalid_point": 422,
    "invalid_time": 422,
    "dimension_mismatch": 422,
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
    """A request that failed; nothing of it was stored.

    Parameters
    ----------
    code : str
        A key of `STATUS_BY_CODE`.
    message : str
        What is wrong, in one sentence.
    details : object, optional
        Further fields for programs, serializable as JSON.
    headers : dict of str, optional
        Headers of the response, such as Retry-After.
    """

    def __init__(self, code: str, message: str, details: Any = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.details, self.headers = code, details, headers or {}

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS_BY_CODE[self.code]

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {"error": {"code": self.code, "message": str(self), "details": self.details}}
