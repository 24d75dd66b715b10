"""The command `limpet detect`: a file, and what is to be found in it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from limpet.cli._outputs import check_not_input, check_outputs, get_default_alarm_uris, open_sinks
from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.report.detection_run import DetectionRun
from limpet.report.detection_text import expected_false_alarms
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.results import BatchResult
from limpet.streams.run_stats import RunStats
from limpet.streams.runner import Runner
from limpet.streams.schema import ColumnSpec
from limpet.streams.schema_probe import ProbedSource
from limpet.streams.sinks.base import MultiSink
from limpet.streams.sources.base import Source
from limpet.streams.uri import open_file_source, redact

if TYPE_CHECKING:
    from rich.console import Console


READ_BLOCK_BYTES = 4 << 20  # bytes: nobody waits for the first results
ALARMS_EXIT_CODE, INTERRUPTED_EXIT_CODE = 1, 130


def run_detect(file: str, values: dict[str, Any], console: Console) -> None:
    """Detects, prints, writes; leaves with 1 if that is wanted for alarms."""

    path = Path(file)
    _check_file(path)
    report = None if str(values["report"]) == "none" else values["report"]
    if report is not None:
        from limpet.report.html import require_writable

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
            from limpet.plots._style import prepared_drawing

            drawing = prepared_drawing()
        detection_run = DetectionRun(path, plan)
        sinks = open_sinks(uris_by_table, overwrite=True)
        with _show_progress(console, path, quiet=is_json) as advance:
            runner = _run_detection(detection_run, probed, MultiSink(sinks), values["late"], advance)
            detection_run.stats = runner.stats
        if report is not None:
            drawing.join()
            from limpet.report.detection import write_detection_report

            write_detection_report(
                report, detection_run, values, lambda: _open_source(path, values), console, quiet=is_json
            )
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
        raise InvalidInputError("detect looks at a file: `limpet watch - --once` reads what is piped in")
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder: `limpet watch {path} --once` reads the files in it")
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
    counts = {name: stats[name] for name in ("records", "points", "rejected", "anomalies", "late", "duplicates")}
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
        "counts": counts | {"alarms": detection_run.stats.n_alarms, "malformed": detection_run.stats.malformed.total},
        "malformed": stats["malformed"],
        "alarms": [raised.record for raised in detection_run.raised],
        "alarms_not_listed": detection_run.stats.n_alarms - len(detection_run.raised),
        "written": output_uris,
    }


# What `limpet detect` prints.


def print_schema(console: Console, path: Path, plan: MonitorPlan) -> None:
    """The columns, before anything is learnt."""
    console.print(Text(str(path), style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, value in plan.describe():
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    console.print(grid)
    for hint in plan.columns.hints:
        console.print(Text(f"  hint: {hint}", style="yellow"))


def print_summary(console: Console, detection_run: DetectionRun, max_alarms: int, output_uris: list[str]) -> None:
    """Counts, the table of alarms, what could not be read, and where everything is."""
    stats = detection_run.stats
    console.print(Text(f"\n{summary_line(stats, detection_run.plan.raises_alarms)}"))
    for sentence in caveats(detection_run):
        console.print(Text(sentence, style="yellow"))
    console.print()
    if detection_run.raised and max_alarms:
        top = detection_run.top_alarms(max_alarms)
        console.print(make_alarm_table(top))
        if stats.n_alarms > len(top):
            note = f"… the {len(top)} that say most; {stats.n_alarms - len(top):,} more are in the results"
            console.print(Text(note, style="dim"))
        console.print()
    print_rejects(console, stats)
    if output_uris:
        console.print(Text(f"Written: {', '.join(output_uris)}"), soft_wrap=True)


def caveats(detection_run: DetectionRun) -> list[str]:
    """What one should know before one trusts the alarms, or that there are none."""
    stats, sentences = detection_run.stats, []
    if stats.n_alarms:
        far = detection_run.plan.learner.far
        n_expected = expected_false_alarms(far, stats.points)
        sentences.append(f"At --far {far:g}, {n_expected} of either kind would be raised if nothing had happened.")
    n_warming_up, streams = detection_run.plan.n_warming_up, detection_run.plan.n_streams
    if n_warming_up and detection_run.plan.raises_alarms:
        subject = f"{n_warming_up:,} of {streams:,} streams are" if streams > 1 else "It is"
        sentences.append(
            f"{subject} too short to raise all alarms: the first 50 points, for changes 150, are to learn from."
        )
    return sentences


def summary_line(stats: RunStats, raises_alarms: bool = True) -> str:
    """The counts in a sentence or two.

    >>> in_words(Tally(records=1000, points=1000, dropped=7))
    '1,000 records; 7 points rejected as outliers. No alarm.'
    """
    points = f" with {stats.points:,} points" if stats.points > stats.records else ""
    lead = f"{stats.records:,} record{'s' * (stats.records != 1)}{points}; "
    lead += f"{stats.rejected:,} point{'s' * (stats.rejected != 1)} rejected as outliers. "
    if not raises_alarms:
        return lead + "It was set by hand: this is the paper's algorithm, which raises no alarms."
    changes, anomalies = stats.alarms["change"], stats.alarms["anomaly"]
    kinds = [(changes, "change", "changes"), (anomalies, "anomaly", "anomalies")]
    counts = " and ".join(f"{n:,} {singular if n == 1 else plural}" for n, singular, plural in kinds if n)
    return lead + (f"Alarms: {counts}." if counts else "No alarm.")


def make_alarm_table(alarms: list[dict[str, Any]]) -> Table:
    """One row an alarm. Rows are counted in each stream, from its first point on."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    has_time, has_key = alarms[0]["time"] is not None, any(alarm["key"] is not None for alarm in alarms)
    headings = [
        *(["when"] if has_time else []),
        *(["stream"] if has_key else []),
        "row",
        "what",
        "where",
        "how much",
        "since row",
    ]
    for heading in headings:
        right = heading in ("row", "since row")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading in ("when", "row", "what"))
    for alarm in alarms:
        since = f"{alarm['onset']:,}" if alarm["onset"] != alarm["row"] else ""
        cells = [str(alarm["time"])] * has_time + [str(alarm["key"])] * has_key + [f"{alarm['row']:,}"]
        style = "bold" if alarm["kind"] == "change" else ""
        which = Text(", ".join(alarm["variables"]))
        table.add_row(*map(Text, cells), Text(alarm["kind"], style=style), which, Text(format_size(alarm)), since)
    return table


def format_size(alarm: dict[str, Any]) -> str:
    """The size of an alarm.

    >>> how_much({"direction": "up", "size": 3.21}), how_much({"direction": "wider", "size": 2.0})
    ('up by 3.2 sd', 'wider, × 2')
    """
    direction, size = alarm["direction"], alarm["size"]
    if size is None:
        return str(direction)
    size_text = f"{size:,.0f}" if size >= 99.5 else f"{size:.2g}"
    return f"{direction} by {size_text} sd" if direction in ("up", "down") else f"{direction}, × {size_text}"


def print_rejects(console: Console, stats: RunStats) -> None:
    """Records that could not be used, by reason, and the first of them; points that came late."""
    rejects = stats.malformed
    if rejects.total:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejects.counts.most_common())
        console.print(Text(f"{rejects.total:,} could not be used: {reasons}. The first:", style="yellow"))
        for reject in rejects.first:
            console.print(Text(f"  {reject}", style="dim"), no_wrap=True, overflow="ellipsis")
    if stats.late or stats.duplicates:
        message = (
            f"{stats.late:,} points came late and {stats.duplicates:,} twice: they were skipped; --late learn takes them."
        )
        console.print(Text(message, style="yellow"))
    if stats.late > stats.points:
        message = "Most points are older than one before them: is the newest first, or is one time wrong?"
        console.print(Text(f"{message} --late learn takes them as they come.", style="yellow"))
