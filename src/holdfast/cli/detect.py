"""The command `holdfast detect`: a file, and what is to be found in it."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from holdfast.alarms.alarm import Alarm
from holdfast.cli.arrangement import MonitorPlan
from holdfast.cli.detect_page import write_report
from holdfast.cli.outputs import check_not_input, check_outputs, get_default_alarm_uris, open_sinks
from holdfast.errors import InvalidInputError
from holdfast.fleet import Fleet
from holdfast.streams.columns import ColumnSpec
from holdfast.streams.peeked import ProbedSource
from holdfast.streams.places import open_file_source, redact
from holdfast.streams.results import BatchResult
from holdfast.streams.runner import Runner
from holdfast.streams.sinks import MultiSink
from holdfast.streams.sketch import MinMaxSummary, last_estimate
from holdfast.streams.source import Source
from holdfast.streams.tally import RunStats

if TYPE_CHECKING:
    from rich.console import Console

READ_BLOCK_BYTES = 4 << 20  # bytes: nobody waits for the first results
MAX_KEPT_ALARMS = 50_000  # alarms that are kept to be shown; sinks get all
ALARMS_EXIT_CODE, INTERRUPTED_EXIT_CODE = 1, 130


class RaisedAlarm(NamedTuple):
    """An alarm: as it was raised, as a row of results, and the name of its stream where there are several."""

    alarm: Alarm
    record: dict[str, Any]
    stream: str | int | None


@dataclass
class DetectionRun:
    """What came of a file: counts, the first alarms, and if it is one stream a sketch of it."""

    path: Path
    plan: MonitorPlan
    stats: RunStats = field(default_factory=RunStats)
    raised: list[RaisedAlarm] = field(default_factory=list)
    summary: MinMaxSummary | None = None

    def top_alarms(self, max_alarms: int) -> list[dict[str, Any]]:
        """So many alarms in the order in which they came: changes before anomalies, and the largest of them."""
        by_weight = sorted(range(len(self.raised)), key=lambda i: _alarm_weight(self.raised[i].record), reverse=True)
        return [self.raised[i].record for i in sorted(by_weight[:max_alarms])]

    def on_batch(self, results: BatchResult) -> None:
        """The results of a batch."""
        batch, trace = results.batch, results.trace
        if trace.alarms and len(self.raised) < MAX_KEPT_ALARMS:
            streams = [alarm.key for alarm in trace.alarms]
            self.raised += map(RaisedAlarm, results.alarms, results.alarm_records(), streams)
        if not isinstance(self.plan.model, Fleet):
            self.summary = self.summary or MinMaxSummary(batch.names or self.plan.columns.values)
            self.summary.add(batch.values, trace, last_estimate(trace), batch.times)


def _alarm_weight(alarm: dict[str, Any]) -> tuple[bool, float]:
    size = math.inf if alarm["size"] is None else alarm["size"]
    is_shift = alarm["direction"] in ("up", "down")
    return alarm["kind"] == "change", size if is_shift else 2.0 * abs(math.log(max(size, 1e-9)))


def run_detect(file: str, values: dict[str, Any], console: Console) -> None:
    """Detects, prints, writes; leaves with 1 if that is wanted for alarms."""
    from holdfast.cli.detect_words import print_schema, print_summary

    path = Path(file)
    _check_file(path)
    report = None if str(values["report"]) == "none" else values["report"]
    if report is not None:
        from holdfast.plots.report import require_writable

        require_writable(report)
    is_json = values["format"] == "json"
    uris_by_table = {name: values[name] for name in ("alarms", "points")}
    if uris_by_table["alarms"] is None and not is_json:
        uris_by_table["alarms"] = get_default_alarm_uris(console)
    output_uris = [str(report)] * (report is not None) + [uri for uris in uris_by_table.values() for uri in uris or ()]
    check_not_input(file, *output_uris)
    check_outputs(*output_uris)
    try:
        source = _open_source(path, values)
        probed = ProbedSource(source)
        if not probed.wait_for_schema(threading.Event()) or probed.columns is None:
            raise InvalidInputError(f"{path}: there is not one record that can be read{_get_first_reject(probed)}")
        plan = MonitorPlan.from_columns(probed.columns, values)
        if values["fail_on_alarm"] and not plan.raises_alarms:
            raise InvalidInputError("--fail-on-alarm: set by hand, by --gamma, --rho or --M, no alarms are raised")
        if not is_json:
            print_schema(console, path, plan)
        if report is not None:
            from holdfast.plots.style import prepared_drawing

            drawing = prepared_drawing()
        detection_run = DetectionRun(path, plan)
        sinks = open_sinks(uris_by_table, overwrite=True)
        with _show_progress(console, path, quiet=is_json) as advance:
            runner = _run_detection(detection_run, probed, MultiSink(sinks), values["late"], advance)
            detection_run.stats = runner.stats
        if report is not None:
            drawing.join()
            write_report(report, detection_run, values, lambda: _open_source(path, values), console, quiet=is_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    output_uris = list(map(redact, output_uris))
    if is_json:
        sys.stdout.write(json.dumps(_to_dict(detection_run, output_uris), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_summary(console, detection_run, values["show"], output_uris)
    runner.raise_if_undelivered()
    if values["fail_on_alarm"] and detection_run.stats.n_alarms:
        raise typer.Exit(ALARMS_EXIT_CODE)


def _run_detection(
    detection_run: DetectionRun, probed: ProbedSource, sink: MultiSink, late: str, advance: Any
) -> Runner:
    plan = detection_run.plan

    def on_batch(results: BatchResult) -> None:
        detection_run.on_batch(results)
        advance(results.batch.lag)

    record = None if isinstance(plan.model, Fleet) else "means"
    runner = Runner(plan.wrap_source(probed), plan.model, sink, late=late, on_batch=on_batch, record=record)
    runner.run()
    return runner


def _open_source(path: Path, values: dict[str, Any]) -> Source:
    columns = None if not values["columns"] else tuple(values["columns"])
    return open_file_source(
        path, ColumnSpec(columns, values["key"], values["time"]), values["form"], block_bytes=READ_BLOCK_BYTES
    )


def read_without_learning(file: str) -> int:
    """Reads a file as `detect` does and learns nothing, for the benchmark to compare with; the number of points."""
    no_options = {"columns": None, "key": None, "time": None, "form": None}
    return sum(len(batch) for batch in _open_source(Path(file), no_options).read(None))


def _check_file(path: Path) -> None:
    if str(path) == "-":
        raise InvalidInputError("detect looks at a file: `holdfast watch - --once` reads what is piped in")
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder: `holdfast watch {path} --once` reads the files in it")
    if not path.exists():
        raise InvalidInputError(f"there is no file {path}")


def _get_first_reject(probed: ProbedSource) -> str:
    """The first reason why records could not be read."""
    first = next((reject for batch in probed.read() for reject in batch.rejects.first), None)
    return "" if first is None else f" ({first})"


@contextmanager
def _show_progress(console: Console, path: Path, quiet: bool) -> Iterator[Any]:
    """A bar that goes by the bytes that are left."""
    if quiet or not console.is_terminal:
        yield lambda behind: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        size = path.stat().st_size
        task = bar.add_task("learning", total=size)
        yield lambda behind: None if behind is None else bar.update(task, completed=size - behind)


def _to_dict(detection_run: DetectionRun, output_uris: list[str]) -> dict[str, Any]:
    columns = detection_run.plan.columns
    stats = detection_run.stats.to_dict()
    counts = {name: stats[name] for name in ("records", "points", "rejected", "anomalies", "late", "repeated")}
    return {
        "file": str(detection_run.path),
        "understood": {
            "columns": list(columns.values),
            "time": columns.time,
            "key": columns.key,
            "separate": detection_run.plan.separate,
            "left_out": columns.ignored,
        },
        "raises_alarms": detection_run.plan.raises_alarms,
        "counts": counts | {"alarms": detection_run.stats.n_alarms, "refused": detection_run.stats.rejects.total},
        "refused": stats["refused"],
        "alarms": [raised.record for raised in detection_run.raised],
        "alarms_not_listed": detection_run.stats.n_alarms - len(detection_run.raised),
        "written": output_uris,
    }
