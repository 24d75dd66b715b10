"""JSON responses; errors have a stable code, a message and an HTTP status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.server.db.engine import StoreError

CODES_BY_STATUS = {
    400: ("malformed_json", "bad_request", "wrong_host"),
    401: ("unauthorized",),
    403: ("wrong_origin",),
    404: ("not_found", "unknown_stream", "unknown_alarm", "unknown_data", "unknown_key", "unknown_column"),
    405: ("method_not_allowed",),
    409: ("idempotency_conflict",),
    413: ("too_large", "too_many_points"),
    415: ("unsupported_media_type",),
    422: ("invalid", "invalid_key", "invalid_point", "invalid_time", "dimension_mismatch", "unknown_variable",
          "unreadable", "too_many_columns"),
    429: ("too_many_requests", "too_many_streams", "too_many_listeners"),
    500: ("internal",),
    503: ("store_unavailable", "overloaded", "stopping"),
}  # fmt: skip
STATUS_BY_CODE = {code: status for status, codes in CODES_BY_STATUS.items() for code in codes}
HEADERS_BY_CODE = {
    "unauthorized": {"WWW-Authenticate": "Bearer"},
    "overloaded": {"Retry-After": "1"},
    "store_unavailable": {"Retry-After": "5"},
    "stopping": {"Retry-After": "5"},
}


class ApiError(InvalidInputError):
    """A request that failed with one of these codes; nothing of it was stored."""

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.status = code, STATUS_BY_CODE[code]
        self.headers = HEADERS_BY_CODE.get(code) if headers is None else headers


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; NaN becomes null."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), status, headers, "application/json")


def error_response(error: ApiError) -> Response:
    """Return the response that reports an error."""
    content = {"error": {"code": error.code, "message": str(error)}}
    return json_response(content, error.status, error.headers)


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of the app the same shape."""

    @app.exception_handler(LimpetError)
    async def on_library_error(_: Request, error: LimpetError) -> Response:
        code = "store_unavailable" if isinstance(error, StoreError) else "invalid"
        return error_response(error if isinstance(error, ApiError) else ApiError(code, str(error)))

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return error_response(ApiError("malformed_json", "body: must be valid JSON."))
        location = ".".join(str(part) for part in first["loc"] if part not in ("query", "path", "body", "header"))
        message = f"{location}: {first['msg']}" if location else str(first["msg"])
        return error_response(ApiError("invalid", f"{message[:300]}."))

    @app.exception_handler(HTTPException)
    async def on_http_error(_: Request, error: HTTPException) -> Response:
        known = {
            404: ("not_found", "path: not found."),
            405: ("method_not_allowed", "method: not allowed for this path."),
            415: ("unsupported_media_type", error.detail),
        }
        code, message = known.get(error.status_code, ("bad_request", error.detail))
        api_error = ApiError(code, str(message), error.headers)
        api_error.status = error.status_code
        return error_response(api_error)
