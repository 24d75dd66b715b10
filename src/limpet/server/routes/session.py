"""Endpoints of the session: exchange the token for a cookie for event streams."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from limpet.server import schemas
from limpet.server.responses import json_response
from limpet.server.security import COOKIE_NAME, RequestGuard

router = APIRouter(tags=["session"])


@router.get("/session")
async def read_session(request: Request) -> Response:
    """Report whether a token is required, and whether this client has a session."""
    request_guard: RequestGuard = request.app.state.request_guard
    token_required = request_guard.config.token is not None
    is_logged_in = not token_required or request_guard.has_session(request.headers)
    return json_response({"token_required": token_required, "ok": is_logged_in})


@router.post("/session", responses=schemas.document_errors(401, 429))
async def log_in(request: Request, login: schemas.Login) -> Response:
    """Check the token and set the session cookie."""
    request_guard: RequestGuard = request.app.state.request_guard
    config = request_guard.config
    if config.token is None:
        return json_response({"token_required": False, "ok": True})
    if not config.is_token(login.token):
        request_guard.refuse_token(request.client.host if request.client else "")
    response = json_response({"token_required": True, "ok": True})
    is_https = request.scope["scheme"] == "https"
    response.set_cookie(COOKIE_NAME, config.session_token(), httponly=True, samesite="strict", secure=is_https)
    return response


@router.delete("/session", status_code=204, response_class=Response)
async def log_out() -> Response:
    """Delete the session cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE_NAME, path="/")
    return response
