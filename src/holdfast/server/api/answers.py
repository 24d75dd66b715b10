"""Answers and errors as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from holdfast.errors import HoldfastError
from holdfast.server.errors import Refused
from holdfast.server.store.opening import StoreError

OF_STATUS = {404: "not_found", 405: "wrong_method", 415: "wrong_type"}


def answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; NaN is null."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, "application/json")


def refusal(error: Refused) -> Response:
    """What a client did wrong, or what is in its way."""
    return answer(error.as_json(), error.status, error.headers)


def tell_errors(app: FastAPI) -> None:
    """Every error of this app has the same shape."""

    @app.exception_handler(Refused)
    async def on_refused(_: Request, error: Refused) -> Response:
        return refusal(error)

    @app.exception_handler(StoreError)
    async def on_store_error(_: Request, error: StoreError) -> Response:
        return refusal(Refused("store_unavailable", str(error), headers={"Retry-After": "5"}))

    @app.exception_handler(HoldfastError)
    async def on_bad_input(_: Request, error: HoldfastError) -> Response:
        return refusal(Refused("invalid", str(error)))

    @app.exception_handler(RequestValidationError)
    async def on_invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("query", "path", "body", "header"))
        told = f"{place}: {first['msg']}" if place else str(first["msg"])
        if first["type"] == "json_invalid":
            return refusal(Refused("malformed_json", "the body is not JSON"))
        return refusal(Refused("invalid", told[:300]))

    @app.exception_handler(HTTPException)
    async def on_http(_: Request, error: HTTPException) -> Response:
        code = OF_STATUS.get(error.status_code, "bad_request")
        told = {"not_found": "there is nothing at this address", "wrong_method": "this address has no such method"}
        content = {"error": {"code": code, "message": told.get(code, str(error.detail)), "details": None}}
        return answer(content, error.status_code, error.headers)
