"""Endpoints of the explorer: data, runs, and the trade-off."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from limpet.server.explorer import examples
from limpet.server.explorer._lru import SizedLRUCache
from limpet.server.explorer.dataset import MAX_COLUMNS, MAX_VALUES, ExplorerDataset, read_file
from limpet.server.explorer.run import run
from limpet.server.explorer.settings import AnySettings, AutoSettings, BaselineSettings
from limpet.server.explorer.tradeoff import noise_std, tradeoff_grid, typical_norm
from limpet.server.responses import ApiError, json_response
from limpet.server.schemas import StrictModel
from limpet.streams.monitor_plan import MAX_JOINT_COLUMNS

DATASET_CACHE: SizedLRUCache[ExplorerDataset] = SizedLRUCache(64 << 20)
TRADEOFF_CACHE: SizedLRUCache[dict[str, Any]] = SizedLRUCache(4 << 20)
TRADEOFF_ENTRY_BYTES = 16 << 10  # approximately
BINARY_CONTENT = {"*/*": {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter(prefix="/explore", tags=["explorer"])


class RunRequest(StrictModel):
    """A stream, its columns, and a setting."""

    data: Annotated[str, Field(max_length=100, description="An id that /explore/data returned, or builtin:NAME.")]
    key: Annotated[str | None, Field(max_length=1000)] = None
    columns: Annotated[list[str] | None, Field(max_length=1000)] = None
    settings: AnySettings = AutoSettings()


@router.get("/streams")
def list_examples(request: Request) -> Response:
    """List the example streams and the limits of files."""
    max_bytes = request.app.state.request_guard.config.max_file_bytes
    limits = {"max_values": MAX_VALUES, "max_bytes": max_bytes, "max_columns": MAX_COLUMNS}
    return json_response({"streams": examples.list_examples(), "limits": limits})


@router.post("/data", openapi_extra={"requestBody": {"required": True, "content": BINARY_CONTENT}})
async def upload_data(
    request: Request,
    name: Annotated[str, Query(max_length=500)] = "data.csv",
    key_column: Annotated[
        str | None, Query(max_length=1000, description="The column of the key; by default it is inferred.")
    ] = None,
) -> Response:
    """Store a file (CSV, TSV, JSON lines, Parquet, .gz) and return its schema."""
    return await run_in_threadpool(_store_dataset, await request.body(), name, key_column)


@router.get("/data/{id}")
def read_data(
    id: str,
    key: Annotated[str | None, Query(max_length=1000)] = None,
    columns: Annotated[list[str] | None, Query(max_length=1000)] = None,
) -> Response:
    """Return the values of a stream by column, with its times and its true means."""
    dataset = _get_dataset(id)
    selection = dataset.select(key, columns or list(dataset.names[:MAX_JOINT_COLUMNS]))
    content = _describe_dataset(id, dataset) | {
        "key": key if key is not None or dataset.keys is None else dataset.key_counts[0]["key"],
        "n_rows": len(selection.values),
        "columns": selection.names,
        "values": [column.copy() for column in selection.values.T],
        "times": selection.times,
        "means": None
        if selection.means is None
        else [[*variable.T.copy()] for variable in selection.means.transpose(2, 0, 1)],
        "typical_norm": typical_norm(selection.values),
        "noise_std": noise_std(selection.values),
    }
    return json_response(content)


@router.post("/runs")
def create_run(request: RunRequest) -> Response:
    """Run a setting on a stream: rejected rows, estimates, scores, alarms."""
    return json_response(run(_get_dataset(request.data).select(request.key, request.columns), request.settings))


@router.post("/tradeoff")
def compute_tradeoff(request: RunRequest) -> Response:
    """Compute the MSE over γ and ρ, or the bound of Theorem 2 without true means."""
    if isinstance(request.settings, BaselineSettings):
        raise ApiError("invalid", "mode: must be auto or manual, got baseline, which has no γ and ρ.")
    dataset = _get_dataset(request.data)
    settings = request.settings.model_dump(include={"mode", "n_components", "norm"})
    cache_key = hashlib.sha256(orjson.dumps([request.data, request.key, request.columns, settings])).hexdigest()
    table = TRADEOFF_CACHE.get(cache_key)
    if table is None:
        table = tradeoff_grid(dataset.select(request.key, request.columns), request.settings)
        TRADEOFF_CACHE.put(cache_key, table, TRADEOFF_ENTRY_BYTES)
    return json_response(table)


def _store_dataset(content: bytes, name: str, key_column: str | None) -> Response:
    header = name if key_column is None else f"{name}\0{key_column}"
    id = hashlib.sha256(header.encode("utf-8", "replace") + b"\0" + content).hexdigest()[:20]
    dataset = DATASET_CACHE.get(id)
    if dataset is None:
        dataset = read_file(content, name, key_column)
        DATASET_CACHE.put(id, dataset, dataset.n_bytes)
    return json_response(_describe_dataset(id, dataset))


def _get_dataset(id: str) -> ExplorerDataset:
    if id.startswith(examples.EXAMPLE_ID_PREFIX):
        return examples.load(id.removeprefix(examples.EXAMPLE_ID_PREFIX))
    dataset = DATASET_CACHE.get(id)
    if dataset is None:
        raise ApiError("unknown_data", "data: the file is no longer in memory. Upload it again.")
    return dataset


def _describe_dataset(id: str, dataset: ExplorerDataset) -> dict[str, Any]:
    return {
        "id": id,
        "name": dataset.name,
        "n_rows": len(dataset.values),
        "all_columns": dataset.names,
        "keys": None if dataset.keys is None else dataset.key_counts[:2000],
        "metadata": dataset.metadata,
        "suggested": dataset.suggested,
        "change_points": dataset.change_points,
        "has_truth": dataset.means is not None,
    }
