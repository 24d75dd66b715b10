"""A finished result kept in a file: an interrupted run loses nothing, and the report can be put together again."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.experiments.plan import Plan
from holdfast.experiments.result import Result
from holdfast.plots.report import DefinitionList, KeyFigures, Part, Picture, Table

PLAIN = {"facts": KeyFigures, "table": Table, "terms": DefinitionList}  # parts that are words and numbers only


def parts_folder(out: Path, plan: Plan) -> Path:
    """Where the results of a plan are kept: each plan has its own folder, and none overwrites another's."""
    return out / "parts" / plan.name


def write_part(folder: Path, name: str, stamp: dict[str, Any], result: Result, seconds: float) -> None:
    """Keeps a result under the folder, whole or not at all."""
    fields = {k: v for k, v in vars(result).items() if k != "parts"}
    record = {"name": name, "stamp": stamp, "elapsed": seconds, **fields, "parts": [_packed(p) for p in result.parts]}
    target = part_path(folder, name)
    draft = target.with_suffix(".tmp")
    draft.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(target)


def read_part(folder: Path, name: str, stamp: dict[str, Any]) -> tuple[Result, float] | None:
    """The result and the seconds it took, if it was kept under the same stamp (sources and versions)."""
    try:
        record = json.loads(part_path(folder, name).read_text(encoding="utf-8"))
        if record.pop("stamp") != stamp or record.pop("name") != name:
            return None
        seconds = float(record.pop("elapsed"))
        record["parts"] = [_unpacked(part) for part in record["parts"]]
        return Result(**record), seconds
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, cut short, not ours
        return None


def part_path(folder: Path, name: str) -> Path:
    """Where a result is kept."""
    return folder / f"{name}.json"


def _packed(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"words": part}
    if isinstance(part, Picture):
        pngs = {k: b64encode(v).decode("ascii") for k in ("png", "narrow") if (v := getattr(part, k)) is not None}
        return {"picture": {**pngs, "description": part.description, "caption": part.caption}}
    return {type(part).__name__.lower(): asdict(part)}


def _unpacked(record: dict[str, Any]) -> Part:
    ((kind, value),) = record.items()
    if kind == "words":
        return str(value)
    if kind == "picture":
        narrow = b64decode(value["narrow"]) if "narrow" in value else None
        return Picture(b64decode(value["png"]), value["description"], value["caption"], narrow)
    return PLAIN[kind](**value)  # type: ignore[no-any-return]
