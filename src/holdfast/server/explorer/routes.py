"""The addresses of the explorer: data, runs, and the trade-off."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from holdfast.server.api.answers import answer
from holdfast.server.errors import Refused
from holdfast.server.explorer import builtin
from holdfast.server.explorer.looked_at import MOST_COLUMNS, LookedAt
from holdfast.server.explorer.reading import MOST, read_file
from holdfast.server.explorer.running import run
from holdfast.server.explorer.settings import AnySetting, Autopilot, Rival
from holdfast.server.explorer.shelf import Shelf
from holdfast.server.explorer.tradeoff import trade, usual_length, usual_spread
from holdfast.streams.separate import TOGETHER  # columns that are looked at if nobody says which

LARGEST = 32 << 20  # bytes of a file
DATA: Shelf[LookedAt] = Shelf(64 << 20)
TRADES: Shelf[dict[str, Any]] = Shelf(4 << 20)
SIZE = 16 << 10  # bytes of a trade-off, about

router = APIRouter(prefix="/explore", tags=["explorer"])


class Asked(BaseModel):
    """A stream, which of its columns, and a setting."""

    model_config = ConfigDict(extra="forbid")

    data: Annotated[str, Field(max_length=100, description="An id that /explore/data gave, or builtin:NAME.")]
    key: Annotated[str | None, Field(max_length=1000)] = None
    columns: Annotated[list[str] | None, Field(max_length=1000)] = None
    settings: AnySetting = Autopilot()


@router.get("/streams")
def streams() -> Response:
    """The built-in streams."""
    limits = {"most_values": MOST, "most_bytes": LARGEST, "most_columns": MOST_COLUMNS}
    return answer({"streams": builtin.listed(), "limits": limits})


@router.post(
    "/data",
    openapi_extra={
        "requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def take_data(
    request: Request,
    name: Annotated[str, Query(max_length=500)] = "data.csv",
    by: Annotated[
        str | None, Query(max_length=1000, description="The column of the key, if it is not to be found.")
    ] = None,
) -> Response:
    """Takes a file as it is (CSV, TSV, JSON lines, Parquet, .gz) and says what was understood of it."""
    content = await _body(request)
    return await run_in_threadpool(_kept, content, name, by)


@router.get("/data/{id}")
def data(
    id: str,
    key: Annotated[str | None, Query(max_length=1000)] = None,
    columns: Annotated[list[str] | None, Query(max_length=1000)] = None,
) -> Response:
    """The values of a stream, column by column, with its times and what is known of its truth."""
    whole = _find(id)
    stream = whole.chosen(key, columns or list(whole.names[:TOGETHER]))
    told = _described(id, whole) | {
        "key": key if key is not None or whole.keys is None else whole.streams[0]["key"],
        "n_rows": len(stream.values),
        "columns": stream.names,
        "values": [column.copy() for column in stream.values.T],
        "times": stream.times,
        "means": None if stream.means is None else [[*of_one.T.copy()] for of_one in stream.means.transpose(2, 0, 1)],
        "usual_length": usual_length(stream.values),
        "usual_spread": usual_spread(stream.values),
    }
    return answer(told)


@router.post("/runs")
def runs(asked: Asked) -> Response:
    """One setting from the first point to the last: what was rejected, the estimate, scores, alarms."""
    return answer(run(_find(asked.data).chosen(asked.key, asked.columns), asked.settings))


@router.post("/tradeoff")
def trade_off(asked: Asked) -> Response:
    """The mean squared error over γ and ρ where the truth is known; else the theory's bound."""
    if isinstance(asked.settings, Rival):
        raise Refused("invalid", "the trade-off of γ and ρ is SRA's, not a rival's")
    whole = _find(asked.data)
    settings = asked.settings.model_dump(include={"mode", "n_components", "norm"})
    name = hashlib.sha256(orjson.dumps([asked.data, asked.key, asked.columns, settings])).hexdigest()
    kept = TRADES.get(name)
    if kept is None:
        kept = trade(whole.chosen(asked.key, asked.columns), asked.settings)
        TRADES.put(name, kept, SIZE)
    return answer(kept)


async def _body(request: Request) -> bytes:
    """The file, as long as it is not too large."""
    too_large = Refused(
        "too_large", f"the file is larger than {LARGEST >> 20} MB: `holdfast detect FILE` takes any size"
    )
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > LARGEST:
        raise too_large
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST:
            raise too_large
    return bytes(content)


def _kept(content: bytes, name: str, by: str | None) -> Response:
    about = name if by is None else f"{name}\0{by}"
    id = hashlib.sha256(about.encode("utf-8", "replace") + b"\0" + content).hexdigest()[:20]
    found = DATA.get(id)
    if found is None:
        found = read_file(content, name, by)
        DATA.put(id, found, found.size)
    return answer(_described(id, found))


def _find(id: str) -> LookedAt:
    if id.startswith(builtin.PREFIX):
        return builtin.load(id.removeprefix(builtin.PREFIX))
    found = DATA.get(id)
    if found is None:
        raise Refused("unknown_data", "this file is not kept here any more: give it again")
    return found


def _described(id: str, found: LookedAt) -> dict[str, Any]:
    return {
        "id": id,
        "name": found.name,
        "n_rows": len(found.values),
        "all_columns": found.names,
        "keys": None if found.keys is None else found.streams[:2000],
        "told": found.told,
        "suggested": found.suggested,
        "change_points": found.change_points,
        "has_truth": found.means is not None,
    }
