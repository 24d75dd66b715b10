"""Serialize responses and errors as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from limpet.exceptions import LimpetError
from limpet.server.db.engine import StoreError
from limpet.server.errors import ApiError

CODE_BY_STATUS = {404: "not_found", 405: "method_not_allowed", 415: "unsupported_media_type"}


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; NaN becomes null."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, "application/json")


def error_response(error: ApiError) -> Response:
    """Return the response that reports an error."""
    return json_response(error.to_dict(), error.status, error.headers)


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of the app the same shape."""

    @app.exception_handler(ApiError)
    async def on_api_error(_: Request, error: ApiError) -> Response:
        return error_response(error)

    @app.exception_handler(StoreError)
    async def on_store_error(_: Request, error: StoreError) -> Response:
        return error_response(ApiError("store_unavailable", str(error), headers={"Retry-After": "5"}))

    @app.exception_handler(LimpetError)
    async def on_library_error(_: Request, error: LimpetError) -> Response:
        return error_response(ApiError("invalid", str(error)))

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"] if part not in ("query", "path", "body", "header"))
        message = f"{location}: {first['msg']}" if location else str(first["msg"])
        if first["type"] == "json_invalid":
            return error_response(ApiError("malformed_json", "body: not valid JSON"))
        return error_response(ApiError("invalid", message[:300]))

    @app.exception_handler(HTTPException)
    async def on_http_error(_: Request, error: HTTPException) -> Response:
        code = CODE_BY_STATUS.get(error.status_code, "bad_request")
        messages = {"not_found": "path: not found", "method_not_allowed": "method: not allowed for this path"}
        content = {"error": {"code": code, "message": messages.get(code, str(error.detail)), "details": None}}
        return json_response(content, error.status_code, error.headers)
