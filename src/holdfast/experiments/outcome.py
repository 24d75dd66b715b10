"""results.json, put together from the results that are finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.experiments.plan import Plan
from holdfast.experiments.provenance import versions
from holdfast.experiments.result import Result

ABOUT = (
    "The tables of arXiv:2007.12160 computed anew; values are [mean, standard deviation] over streams or restarts. "
    "Keys and layout of the paper's tables; SRA-… and the rows after PH are further methods. Only 'seconds' differs "
    "from run to run."
)
Finished = Mapping[str, tuple[Result, float]]


def write_results(path: Path, finished: Finished, failed: Mapping[str, str], plan: Plan) -> None:
    """Writes results.json, whole or not at all."""
    record: dict[str, Any] = {"_about": ABOUT}
    for result, _ in finished.values():
        record |= result.tables
    for name in ("chosen", "cannot_run", "intervals"):
        record[name] = {key: value for result, _ in finished.values() for key, value in getattr(result, name).items()}
    record["against_paper"] = verdicts_of(finished)
    record["auto_against_paper"] = auto_verdicts_of(finished)
    record["not_finished"] = dict(failed)
    record["plan"] = plan.as_dict()
    record["seeds"] = {
        "streams": plan.seeds,
        "held_out": plan.held_out_seeds,
        "restarts": plan.restarts,
        "restarts_on_skab": plan.restarts_on_skab,
    }
    record["versions"] = versions()
    record["seconds"] = {
        name: {"elapsed": round(seconds, 3), **result.seconds} for name, (result, seconds) in finished.items()
    }
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)


def verdicts_of(finished: Finished) -> list[dict[str, Any]]:
    """How each cell of SRA compares with the paper's."""
    return [record for result, _ in finished.values() for record in result.verdicts]


def auto_verdicts_of(finished: Finished) -> list[dict[str, Any]]:
    """How each cell of SRA-auto does."""
    return [record for result, _ in finished.values() for record in result.auto_verdicts]
