"""`holdfast reproduce`: the results named, one after the other, each kept as soon as it is finished."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import BadInputError, DataError, HoldfastWarning, MissingExtraError
from holdfast.experiments.lab import Lab
from holdfast.experiments.outcome import versions, write_results, write_whole_report
from holdfast.experiments.parts import read_part, write_part
from holdfast.experiments.plan import Plan
from holdfast.experiments.result import Result

if TYPE_CHECKING:
    from rich.console import Console

# In the order of the paper; each is a file of this folder.
NAMES = (
    "illustration",
    "sample_streams",
    "gamma_rho",
    "alpha",
    "mse_univariate",
    "auc_univariate",
    "computation_times",
    "mse_multivariate",
    "auc_multivariate",
    "well_log_annotations",
    "auc_well_log",
    "well_log_estimates",
    "skab_sample",
    "auc_skab",
    "dataset_summary",
    "anomaly_streams",
    "auc_anomaly",
    "appendix_b_auc_of_sra",
)


def reproduce(names: Sequence[str], out: Path, plan: Plan, console: Console, resume: bool = False) -> bool:
    """Runs the results named (all if none is), writes results.json and report.html to `out`; says whether all ran.

    Results that were finished earlier under the same versions and plan stay in both files; with `resume` those among
    the names are not run again. One that lacks its data, or an extra, is told and passed over.
    """
    wanted = _resolve(names)
    out = _folder(out)
    stamp = {"versions": versions(), "plan": plan.as_dict()}
    finished = {name: kept for name in NAMES if (kept := read_part(out, name, stamp)) is not None}
    waiting = [name for name in wanted if not (resume and name in finished)]
    for name in waiting:
        finished.pop(name, None)
    failed: dict[str, str] = {}
    with _Bar(console, len(waiting)) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)  # what a setting does to a stream is what the tables show
        lab = Lab(plan, bar.advance)
        for name in waiting:
            bar.begin(name)
            began = time.perf_counter()
            try:
                result: Result = import_module(f"holdfast.experiments.{name}").run(lab)
            except (DataError, MissingExtraError) as error:
                failed[name] = str(error)
                bar.tell(f"{name}: not run. {error}", style="yellow")
                continue
            seconds = time.perf_counter() - began
            write_part(out, name, stamp, result, seconds)
            finished[name] = (result, seconds)
            ordered = {each: finished[each] for each in NAMES if each in finished}
            write_results(out / "results.json", ordered, failed, plan)
            write_whole_report(out / "report.html", ordered, failed, plan)
            bar.tell(f"{name}: {result.title} ({seconds:.1f} s)")
    ordered = {each: finished[each] for each in NAMES if each in finished}
    write_results(out / "results.json", ordered, failed, plan)
    write_whole_report(out / "report.html", ordered, failed, plan)
    return not failed


def _resolve(names: Sequence[str]) -> list[str]:
    """The results meant, in the order of the paper; `*_notebook` is part of the table without it.

    >>> _resolve(["auc_multivariate_notebook", "alpha"])
    ['alpha', 'auc_multivariate']
    """
    asked = {name.removesuffix("_notebook") for name in names}
    unknown = sorted(asked - set(NAMES))
    if unknown:
        raise BadInputError(f"no result is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return [name for name in NAMES if not asked or name in asked]


def _folder(out: Path) -> Path:
    from holdfast.plots.report import require_writable

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(
            f"the folder {str(out)!r} cannot be made: {(error.strerror or str(error)).lower()}"
        ) from None
    require_writable(out / "report.html")
    return out


class _Bar:
    """One progress bar: which result, how many of them, how far this one is."""

    def __init__(self, console: Console, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[part]}"),
            TimeElapsedColumn(),
        )
        self._console = console
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("starting", total=total, part="")
        self._begun = 0

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        self._progress.update(self._task, description=name, completed=self._begun, part="")
        self._begun += 1

    def advance(self, done: int, total: int) -> None:
        completed = self._begun - 1 + done / total
        self._progress.update(self._task, completed=completed, part=f"{done:,} of {total:,} runs")

    def tell(self, words: str, style: str = "") -> None:
        self._console.print(words, markup=False, highlight=False, style=style, soft_wrap=True)
