"""Store finished results, to resume interrupted runs."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.report.html import DefinitionList, KeyFigures, Part, Picture, Table
from limpet_lab.paper._provenance import get_versions
from limpet_lab.paper.config import Plan

# What an experiment brings: tables for results.json, and words and pictures for the report.

Cell = list[float]  # [mean, standard deviation]


def compute_cell(values: npt.ArrayLike) -> Cell:
    """Compute mean and standard deviation (over n) of values.

    >>> compute_cell([1.0, 3.0])
    [2.0, 1.0]
    """
    numbers = np.asarray(values, dtype=np.float64)
    return [float(numbers.mean()), float(numbers.std())]


@dataclass
class Result:
    """A result of the paper.

    tables: by key, laid out as the paper's numbers are (see `paper_tables.json`). chosen: settings by table, column
    and method. cannot_run: settings that no detector could be made of, by table and method, with the reason.
    intervals: 95 % intervals by table, column and method. seconds: what was timed. parts: of the report.
    verdicts: how SRA's cells compare with the paper's. auto_verdicts: how those of Detector do.
    """

    title: str
    tables: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    cannot_run: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, Any] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    auto_verdicts: list[dict[str, Any]] = field(default_factory=list)
    parts: Sequence[Part] = ()


# results.json, put together from the results that are finished.

RESULTS_NOTE = (
    "The tables of arXiv:2007.12160 recomputed; values are [mean, standard deviation] over streams or restarts. "
    "Keys and layout of the paper's tables; SRA-… and the rows after PH are further methods. Only 'seconds' differs "
    "from run to run."
)
Finished = Mapping[str, tuple[Result, float]]


def write_results(path: Path, finished: Finished, failed: Mapping[str, str], plan: Plan) -> None:
    """Write results.json, atomically."""
    record: dict[str, Any] = {"_about": RESULTS_NOTE}
    for result, _ in finished.values():
        record |= result.tables
    for name in ("chosen", "cannot_run", "intervals"):
        record[name] = {key: value for result, _ in finished.values() for key, value in getattr(result, name).items()}
    record["against_paper"] = collect_verdicts(finished)
    record["auto_against_paper"] = collect_auto_verdicts(finished)
    record["not_finished"] = dict(failed)
    record["plan"] = plan.to_dict()
    record["seeds"] = {
        "streams": plan.seeds,
        "held_out": plan.held_out_seeds,
        "restarts": plan.restarts,
        "restarts_on_skab": plan.restarts_on_skab,
    }
    record["versions"] = get_versions()
    record["seconds"] = {
        name: {"elapsed": round(seconds, 3), **result.seconds} for name, (result, seconds) in finished.items()
    }
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)


def collect_verdicts(finished: Finished) -> list[dict[str, Any]]:
    """Return how each cell of SRA compares with the paper's."""
    return [record for result, _ in finished.values() for record in result.verdicts]


def collect_auto_verdicts(finished: Finished) -> list[dict[str, Any]]:
    """Return how each cell of Detector compares with the paper's."""
    return [record for result, _ in finished.values() for record in result.auto_verdicts]


PART_CLASSES = {
    each.__name__.lower(): each for each in (KeyFigures, Table, DefinitionList)
}  # parts of words and numbers only


def get_parts_folder(out: Path, plan: Plan) -> Path:
    """Return the folder for the results of a plan, so that no plan overwrites the results of another."""
    return out / "parts" / plan.name


def write_part(folder: Path, name: str, stamp: dict[str, Any], result: Result, seconds: float) -> None:
    """Write a result to the folder, atomically."""
    fields = {k: v for k, v in vars(result).items() if k != "parts"}
    record = {
        "name": name,
        "stamp": stamp,
        "elapsed": seconds,
        **fields,
        "parts": [_part_to_dict(p) for p in result.parts],
    }
    target = get_part_path(folder, name)
    draft = target.with_suffix(".tmp")
    draft.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(target)


def read_part(folder: Path, name: str, stamp: dict[str, Any]) -> tuple[Result, float] | None:
    """Return a result and its seconds, if it was written under the same stamp (sources and versions)."""
    try:
        record = json.loads(get_part_path(folder, name).read_text(encoding="utf-8"))
        if record.pop("stamp") != stamp or record.pop("name") != name:
            return None
        seconds = float(record.pop("elapsed"))
        record["parts"] = [_part_from_dict(part) for part in record["parts"]]
        return Result(**record), seconds
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, cut short, not ours
        return None


def get_part_path(folder: Path, name: str) -> Path:
    """Return the path of a result."""
    return folder / f"{name}.json"


def _part_to_dict(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"words": part}
    if isinstance(part, Picture):
        pngs = {k: b64encode(v).decode("ascii") for k in ("png", "narrow") if (v := getattr(part, k)) is not None}
        return {"picture": {**pngs, "description": part.description, "caption": part.caption}}
    return {type(part).__name__.lower(): asdict(part)}


def _part_from_dict(record: dict[str, Any]) -> Part:
    ((kind, value),) = record.items()
    if kind == "words":
        return str(value)
    if kind == "picture":
        narrow = b64decode(value["narrow"]) if "narrow" in value else None
        return Picture(b64decode(value["png"]), value["description"], value["caption"], narrow)
    return PART_CLASSES[kind](**value)
