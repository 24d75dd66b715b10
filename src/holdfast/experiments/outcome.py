"""results.json and report.html, put together from the results that are finished."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from holdfast.experiments.comparison import AT_OR_ABOVE, EQUAL, SHORT, difference, figure
from holdfast.experiments.plan import Plan
from holdfast.experiments.result import Result
from holdfast.plots.report import Facts, Section, Table, write_report

ABOUT = (
    "The tables of arXiv:2007.12160 computed anew; values are [mean, standard deviation] over streams or restarts. "
    "Keys and layout of the paper's tables; SRA-… and the rows after PH are further methods. Only 'seconds' differs "
    "from run to run."
)
PACKAGES = ("numpy", "numba", "river", "scikit-learn", "scipy")
Finished = Mapping[str, tuple[Result, float]]


def versions() -> dict[str, str]:
    """What the figures depend on besides the data."""
    from holdfast import __version__

    found = {"holdfast": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def write_results(path: Path, finished: Finished, failed: Mapping[str, str], plan: Plan) -> None:
    """Writes results.json, whole or not at all."""
    record: dict[str, Any] = {"_about": ABOUT}
    for result, _ in finished.values():
        record |= result.tables
    for name in ("chosen", "cannot_run", "intervals"):
        record[name] = {key: value for result, _ in finished.values() for key, value in getattr(result, name).items()}
    record["against_paper"] = [verdict for result, _ in finished.values() for verdict in result.verdicts]
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


def write_whole_report(path: Path, finished: Finished, failed: Mapping[str, str], plan: Plan) -> None:
    """Writes report.html: first how SRA's cells compare with the paper's, then every result."""
    records = [verdict for result, _ in finished.values() for verdict in result.verdicts]
    sections = [_overview(records, sum(seconds for _, seconds in finished.values()), plan)]
    sections += [Section(result.title, result.parts) for result, _ in finished.values()]
    if failed:
        sections.append(Section("Not finished", [f"{name}: {why}" for name, why in failed.items()]))
    lead = (
        "Every table and figure of “Online Robust and Adaptive Learning from Data Streams” (Fukushima, Nitanda and "
        "Yamanishi, 2020), computed anew beside the printed numbers, with rivals started, tuned and scored as SRA is."
    )
    footer = " · ".join(f"{name} {version}" for name, version in versions().items())
    write_report(path, "The paper, reproduced", lead, sections, footer)


def _overview(records: list[dict[str, Any]], seconds: float, plan: Plan) -> Section:
    counts = {kind: sum(record["verdict"] == kind for record in records) for kind in (AT_OR_ABOVE, EQUAL, SHORT)}
    facts = Facts(
        [
            (str(counts[AT_OR_ABOVE]), "cells of SRA at or above the paper’s"),
            (str(counts[EQUAL]), "short by less than the paper’s standard deviation"),
            (str(counts[SHORT]), "short by more"),
            (f"{seconds:.0f} s", "in all, on this machine"),
        ]
    )
    rows = [
        [
            f"{record['table']}, {record['cell']}",
            figure(record["ours"]),
            *(figure(record[name]) if name in record else "" for name in ("heldout", "printed")),
            f"{record['paper']:.3f} ± {record['paper_std']:.3f}",
            difference(record["ours"], record["paper"]),
            record["verdict"] + (", paper inside our 95 % interval" if record.get("paper_inside_interval") else ""),
        ]
        for record in records
    ]
    taste = " This is a taste, with few streams and restarts: `holdfast reproduce` runs all." if plan.quick else ""
    words = (
        f"{plan.trials} streams of each kind, {plan.restarts} restarts on real data.{taste} SRA is plain SRA as "
        "published; where it falls short, its section says why. Held out: tuned on other streams. Printed setting: the "
        "one the paper names."
    )
    parts: list[str | Facts | Table] = [facts, words]
    if rows:
        parts.append(Table(["SRA’s cells", "ours", "held out", "printed setting", "paper", "difference", ""], rows))
    return Section("At a glance", parts)
