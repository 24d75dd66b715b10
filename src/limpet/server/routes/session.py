"""The login of a page: a cookie for who knows the token, since pages cannot send it with every event stream."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from limpet.server import schemas
from limpet.server.responses import json_response
from limpet.server.security import COOKIE_NAME, RequestGuard

router = APIRouter(tags=["session"])


@router.get("/session")
async def read_session(request: Request) -> Response:
    """Whether a token is needed here, and whether this browser has shown it."""
    request_guard: RequestGuard = request.app.state.request_guard
    needed = request_guard.config.token is not None
    return json_response({"needed": needed, "ok": not needed or request_guard.has_session(request.headers)})


@router.post("/session", responses={401: {"model": schemas.Error}, 429: {"model": schemas.Error}})
async def log_in(request: Request, login: schemas.Login) -> Response:
    """Shows the token, and gets a cookie."""
    request_guard: RequestGuard = request.app.state.request_guard
    if request_guard.config.token is None:
        return json_response({"needed": False, "ok": True})
    if not request_guard.config.is_token(login.token):
        request_guard.reject_token(request.client.host if request.client else "")
    response = json_response({"needed": True, "ok": True})
    secure = request.scope["scheme"] == "https"
    response.set_cookie(
        COOKIE_NAME, request_guard.config.session_token(), httponly=True, samesite="strict", secure=secure, path="/"
    )
    return response


@router.delete("/session", status_code=204, response_class=Response)
async def log_out() -> Response:
    """Forgets the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE_NAME, path="/")
    return response
