"""Run the results of `limpet reproduce` one after the other, and keep each as soon as it is finished."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from limpet.exceptions import DatasetError, InvalidInputError, LimpetWarning
from limpet_lab.paper._precompile import compile_ahead
from limpet_lab.paper._provenance import make_stamp, require_packages
from limpet_lab.paper._report import describe_run, write_whole_report
from limpet_lab.paper._results import Result, get_part_path, get_parts_folder, read_part, write_part, write_results
from limpet_lab.paper.config import Plan
from limpet_lab.paper.context import ExperimentContext

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


# In the order of the paper; each is a file of this folder.
MODULE_BY_NAME = {
    "illustration": "fig_illustration",
    "sample_streams": "fig_sample_streams",
    "gamma_rho": "fig_gamma_rho",
    "alpha": "fig_alpha",
    "mse_univariate": "table_mse_univariate",
    "auc_univariate": "table_auc_univariate",
    "computation_times": "fig_tuning_time",
    "mse_multivariate": "table_mse_multivariate",
    "auc_multivariate": "table_auc_multivariate",
    "well_log_annotations": "fig_well_log_annotations",
    "auc_well_log": "table_auc_well_log",
    "well_log_estimates": "fig_well_log_estimates",
    "skab_sample": "fig_skab_sample",
    "auc_skab": "table_auc_skab",
    "dataset_summary": "table_datasets",
    "anomaly_streams": "fig_anomaly_streams",
    "auc_anomaly": "table_auc_anomaly",
    "appendix_b_auc_of_sra": "table_appendix_b",
}
NAMES = tuple(MODULE_BY_NAME)


def reproduce(names: Sequence[str], out: Path, plan: Plan, console: Console, resume: bool = False) -> bool:
    """Run results (by default all), write results.json and report.html to `out`; return whether all ran.

    Results that were finished earlier under the same versions and plan stay in both files; with `resume` those among
    the names are not run again. One that lacks its data is reported and skipped.
    """
    wanted = _resolve(names)
    require_packages()
    folder = _make_folders(out, plan)
    stamp = make_stamp()
    finished = {name: part for name in NAMES if (part := read_part(folder, name, stamp)) is not None}
    waiting = [name for name in wanted if not (resume and name in finished)]
    stale = [name for name in NAMES if name not in {*finished, *wanted} and get_part_path(folder, name).exists()]
    for name in waiting:
        finished.pop(name, None)
    failed: dict[str, str] = {}
    progress = _make_progress(console)
    task = progress.add_task("starting", total=len(waiting), part="")

    def show_part(n_finished: int, total: int) -> None:
        """Show how many runs of the current result are done."""
        completed = waiting.index(name) + n_finished / total
        progress.update(task, completed=completed, part=f"{n_finished:,} of {total:,} runs")

    with compile_ahead(waiting, plan), progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # the tables show the effect of a setting
        if stale:
            _print(
                console, f"Left out, since another version made it: {', '.join(stale)}. Name them to run them again."
            )
        context = ExperimentContext(plan, show_part)
        try:
            for i, name in enumerate(waiting):
                progress.update(task, description=name, completed=i, part="")
                if not console.is_terminal:
                    _print(console, f"[{i + 1} of {len(waiting)}] {name}")
                began = time.perf_counter()
                try:
                    result: Result = import_module(f"limpet_lab.paper.{MODULE_BY_NAME[name]}").run(context)
                except DatasetError as error:
                    message = str(error) if not failed else str(error).partition(". ")[0]  # the advice once
                    failed[name] = str(error)
                    _print(console, f"{name}: not run. {message}", style="yellow")
                    continue
                seconds = time.perf_counter() - began
                finished[name] = (result, seconds)
                write_part(folder, name, stamp, result, seconds)
                _write_outputs(out, finished, failed, plan)
                _print(console, f"{name}: {result.title} ({seconds:.1f} s)")
        except KeyboardInterrupt:
            _write_outputs(out, finished, failed, plan)
            n_finished = sum(name in finished for name in wanted)
            _print(
                console,
                f"Stopped. {n_finished} of {len(wanted)} are finished and kept in {out}. Continue with --resume.",
            )
            raise
        _write_outputs(out, finished, failed, plan)
        for sentence in describe_run(finished, plan):
            _print(console, sentence)
        if failed:
            _print(console, f"Not run, since data are missing: {', '.join(failed)}.", style="yellow")
    return not failed


def _make_progress(console: Console) -> Progress:
    """Return a progress bar: which result, how many of them, how far it is. In a log file, lines instead."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    name, part = TextColumn("{task.description}"), TextColumn("{task.fields[part]}")
    columns = (name, BarColumn(), MofNCompleteColumn(), part, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _print(console: Console, text: str, style: str = "") -> None:
    """Print a line, above the progress bar if it is shown."""
    console.print(text, markup=False, highlight=False, style=style, soft_wrap=True)


def get_titles() -> dict[str, str]:
    """Return the titles of all results by name."""
    return {name: import_module(f"limpet_lab.paper.{MODULE_BY_NAME[name]}").TITLE for name in NAMES}


def _resolve(names: Sequence[str]) -> list[str]:
    """Return the requested results in the order of the paper; `*_notebook` is part of the table without it.

    >>> _resolve(["auc_multivariate_notebook", "alpha"])
    ['alpha', 'auc_multivariate']
    """
    requested = {name.removesuffix("_notebook") for name in names}
    unknown = sorted(requested - set(NAMES))
    if unknown:
        near = get_close_matches(unknown[0], NAMES, n=3)
        advice = f"Did you mean {' or '.join(near)}?" if near else "See --list."
        raise InvalidInputError(f"TABLE: must be the name of a result, got {', '.join(unknown)}. {advice}")
    return [name for name in NAMES if not requested or name in requested]


def _make_folders(out: Path, plan: Plan) -> Path:
    """Create the folders and check that files can be written, before any work is done."""
    from limpet.report.html import require_writable

    folder = get_parts_folder(out, plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--out: cannot create {str(folder)!r}: {(error.strerror or str(error)).lower()}."
        ) from None
    for path in (out / "report.html", out / "results.json", folder / "writable"):
        require_writable(path)
    return folder


def _write_outputs(
    out: Path, finished: Mapping[str, tuple[Result, float]], failed: Mapping[str, str], plan: Plan
) -> None:
    ordered = {name: finished[name] for name in NAMES if name in finished}
    write_results(out / "results.json", ordered, failed, plan)
    write_whole_report(out / "report.html", ordered, failed, plan)
