"""What is refused, and how it is told: one shape of error for all of the explorer's addresses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from holdfast.errors import BadInputError, DataError, HoldfastError, MissingExtraError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
INVALID = 422


class Refusal(BadInputError):
    """Something that is asked for is not done. code: for programs. status: as HTTP has it."""

    def __init__(self, status: int, code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.details = status, code, details


def as_answer(error: HoldfastError | RequestValidationError) -> Response:
    """An error in words."""
    details: Any = None
    if isinstance(error, Refusal):
        status, code, message, details = error.status, error.code, str(error), error.details
    elif isinstance(error, RequestValidationError):
        places = [(".".join(map(str, one["loc"][1:])) or "body", one["msg"]) for one in error.errors()[:5]]
        status, code = INVALID, "invalid"
        message = "; ".join(f"{place}: {what}" for place, what in places)
        details = [{"where": place, "message": what} for place, what in places]
    elif isinstance(error, DataError | MissingExtraError):
        status, code, message = 424, "not_installed", str(error)
    else:
        status, code, message = INVALID, "invalid", str(error)
    body = {"error": {"code": code, "message": message, "details": details}}
    return Response(orjson.dumps(body), status, media_type="application/json")


class ToldRoute(APIRoute):
    """A route whose errors are told in that shape, whatever application it is part of."""

    def get_route_handler(self) -> Handler:
        """The handler, and what tells of its errors."""
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except (HoldfastError, RequestValidationError) as error:
                return as_answer(error)

        return told
