"""report.html, put together from the results that are finished."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limpet.report.html import DefinitionList, KeyFigures, Part, Section, Table, write_report
from limpet_lab.paper._compare import (
    AUTO_HEADING,
    CELL_HEADING,
    EQUAL,
    REACHED,
    SHORT,
    describe_auto_tally,
    describe_tally,
    format_verdict,
    make_auto_cell_row,
    make_cell_row,
)
from limpet_lab.paper._provenance import get_versions
from limpet_lab.paper._results import Finished, collect_auto_verdicts, collect_verdicts
from limpet_lab.paper.config import Plan

HOW_TO_READ_CELLS = (
    "Errors (mse) are better when smaller, areas (auc) when larger. Reached: as good as the paper’s at its three "
    "digits, or better. Equal: short by less than the paper’s own standard deviation. In interval: the paper’s value "
    "lies in our 95 % bootstrap interval."
)
SYMBOLS = {"gamma": "γ", "beta": "β", "rho": "ρ", "alpha": "α", "delta": "δ", "n_components": "components"}
TERMS = DefinitionList(
    [
        ("S_bc, S_ac, S_tot", "Mean squared error of the means before the change, after it, and over both."),
        ("S_eval", "The same at times 500 to 999, by which settings are chosen."),
        (
            "AUC",
            "Area under the curve of recalled benefit against false alarms: an alarm near a change earns the more the "
            "nearer it is, up to T_b rows away; 0.5 is what a constant score gets. On SMTP and THYROID the area "
            "under the ordinary ROC curve.",
        ),
        (
            "Detector",
            "lp.Detector(): no γ, ρ, β or M, no grid, no points drawn to start on. It is the same for every stream, "
            "except for the number of components, which all learners are given on the synthetic data. "
            "Its constants were settled with these data sets in sight, though not on any one of them alone.",
        ),
        ("γ, ρ", "SRA rejects a point whose update is larger than γ, and otherwise moves by the step ρ."),
        ("β, M", "Constants of the paper’s Corollary 1, which makes ρ of them and γ."),
        ("SDEM, iEM, sEM", "Online learners of the same mixtures without a threshold: the paper’s baselines."),
        ("constant, random, time", "Dummies: a score of 0, random numbers, and the number of the row."),
        ("held out", "Tuned on other streams, instead of on those that are scored."),
        ("printed setting", "The setting that the paper reports as chosen, not tuned here."),
        ("printed, notebook data", "The 3-D streams as the paper describes them, and as its authors’ code drew them."),
        (
            "lock-out",
            "After a jump larger than γ every point of the new regime is rejected, and the model is locked out.",
        ),
    ]
)


def write_whole_report(path: Path, finished: Finished, failed: Mapping[str, str], plan: Plan) -> None:
    """Write report.html: first how SRA's cells compare with the paper's, then every result."""
    sections = [_make_overview(finished, plan), Section("How to read it", [TERMS])]
    for name, (result, _) in finished.items():
        sections.append(Section(result.title, [*result.parts, *_make_setting_tables(result.chosen)], name))
    if failed:
        sections.append(Section("Not finished", [f"{name}: {why}" for name, why in failed.items()]))
    lead = (
        "Every table and figure of “Online Robust and Adaptive Learning from Data Streams” (Fukushima, Nitanda and "
        "Yamanishi, 2020), recomputed next to the printed numbers, with baselines started, tuned and scored as SRA is."
    )
    footer = " · ".join(f"{name} {version}" for name, version in get_versions().items())
    write_report(path, "The paper, reproduced", lead, sections, footer)


def describe_run(finished: Finished, plan: Plan) -> list[str]:
    """Describe how SRA's cells and those of Detector compare with the paper's, in a sentence each."""
    records, untuned = collect_verdicts(finished), collect_auto_verdicts(finished)
    if not records:
        return ["None of these has cells to be held against the paper’s SRA."]
    if plan.is_quick_run:
        return [
            "Quick run: too few streams and restarts for a comparison with the paper. limpet reproduce runs them all."
        ]
    return [describe_tally(records), *([describe_auto_tally(untuned)] if untuned else [])]


def _make_overview(finished: Finished, plan: Plan) -> Section:
    records, untuned = collect_verdicts(finished), collect_auto_verdicts(finished)
    seconds = sum(elapsed for _, elapsed in finished.values())
    parts: list[Part] = []
    if records and not plan.is_quick_run:
        counted = [record["verdict"] for record in records]
        as_good = [record["verdict"] for record in untuned].count(REACHED)
        parts.append(
            KeyFigures(
                [
                    (str(counted.count(REACHED)), "cells of SRA as good as the paper’s, or better"),
                    (str(counted.count(EQUAL)), "short by less than the paper’s standard deviation"),
                    (str(counted.count(SHORT)), "short by more"),
                    (f"{as_good} of {len(untuned)}", "cells in which Detector, untuned, reaches the paper’s tuned SRA"),
                    (f"{seconds:.0f} s", "in all, on this machine"),
                ]
            )
        )
    streams = "1 stream" if plan.trials == 1 else f"{plan.trials} streams"
    restarts = "1 restart" if plan.restarts == 1 else f"{plan.restarts} restarts"
    parts += [
        f"{streams} of each kind, {restarts} on real data ({plan.restarts_on_skab} on SKAB). SRA is plain SRA as "
        "published; where it falls short of the paper, or a baseline is ahead of it, its section reports it, and why. "
        "Detector is lp.Detector(), with nothing tuned; its cells are not counted as SRA’s.",
        *describe_run(finished, plan),
    ]
    judged = [] if plan.is_quick_run else ["verdict"]
    if records:
        heading = ["SRA’s cells", *judged, *CELL_HEADING]
        rows = [
            [f"{r['table']}, {r['cell']}", *(format_verdict(r) for _ in judged), *make_cell_row(r)] for r in records
        ]
        parts.append(Table(heading, rows, HOW_TO_READ_CELLS))
    if untuned:
        heading = ["Detector’s cells", *judged, *AUTO_HEADING]
        rows = [
            [f"{r['table']}, {r['cell']}", *(format_verdict(r) for _ in judged), *make_auto_cell_row(r)]
            for r in untuned
        ]
        parts.append(Table(heading, rows, "The same for lp.Detector(); the paper’s SRA and ours are tuned."))
    return Section("At a glance", parts)


def _make_setting_tables(chosen: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]) -> list[Table]:
    """Return a table of the chosen settings for each table of a result: a row per method, a column per cell."""
    tables = []
    for key, columns in chosen.items():
        methods = list(dict.fromkeys(name for settings in columns.values() for name in settings))
        rows = [[name, *(_format_setting(settings.get(name, {})) for settings in columns.values())] for name in methods]
        rows = [row for row in rows if any(row[1:])]
        tables.append(Table(["", *columns], rows, toggle=f"Settings chosen for {key}"))
    return tables


def _format_setting(setting: Mapping[str, Any]) -> str:
    """Format a setting in one line.

    >>> _format_setting({"gamma": 3.0, "beta": 0.1, "rho": 0.01156})
    'γ 3, β 0.1, ρ 0.0116'
    """
    values = [(SYMBOLS.get(k, k.replace("_auc", " AUC")), v) for k, v in setting.items()]
    return ", ".join(f"{name} {value if isinstance(value, str) else format(value, '.3g')}" for name, value in values)
