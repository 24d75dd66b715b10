"""The login of a page: a cookie for who knows the token, since pages cannot send it with every event stream."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from holdfast.server.api import schemas
from holdfast.server.api.answers import answer
from holdfast.server.api.door import COOKIE, Door

router = APIRouter(tags=["session"])


@router.get("/session")
async def read_session(request: Request) -> Response:
    """Whether a token is needed here, and whether this browser has shown it."""
    door: Door = request.app.state.door
    needed = door.rules.token is not None
    return answer({"needed": needed, "ok": not needed or door.has_session(request.headers)})


@router.post("/session", responses={401: {"model": schemas.Error}, 429: {"model": schemas.Error}})
async def log_in(request: Request, login: schemas.Login) -> Response:
    """Shows the token, and gets a cookie."""
    door: Door = request.app.state.door
    if door.rules.token is None:
        return answer({"needed": False, "ok": True})
    if not door.rules.is_token(login.token):
        door.refuse_guess(request.client.host if request.client else "")
    response = answer({"needed": True, "ok": True})
    secure = request.scope["scheme"] == "https"
    response.set_cookie(COOKIE, door.rules.session(), httponly=True, samesite="strict", secure=secure, path="/")
    return response


@router.delete("/session", status_code=204, response_class=Response)
async def log_out() -> Response:
    """Forgets the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response
