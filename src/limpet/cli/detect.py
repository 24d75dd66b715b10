"""The command `limpet detect`: find outliers, anomalies and changes in a file."""

from __future__ import annotations

import csv
import json
import shlex
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from limpet._format import plural, redact_url
from limpet.cli.options import get_column_names, get_destinations, make_learner
from limpet.detection.alarm import Alarm, most_important
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.fleet import Fleet
from limpet.learners import Detector
from limpet.learners.results import RESULT_FIELDS
from limpet.report.detection import DetectionReport, StreamReport, expected_false_alarms, list_streams, write_detection
from limpet.report.html import GENERATOR, check_report
from limpet.streams.downsample import MinMaxSummary, last_estimate
from limpet.streams.formats.arrow import import_pyarrow
from limpet.streams.monitor_plan import MonitorPlan, warmup_points
from limpet.streams.results import ALARM_COLUMNS, BatchResult, RunStats
from limpet.streams.runner import Runner
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import MultiSink
from limpet.streams.sinks.files import OwnerLockFile
from limpet.streams.sources.base import BaseSource, ProbedSource
from limpet.streams.uri import DATABASE_SUFFIXES, PARQUET_SUFFIXES, local_path, open_file_source, open_sink

READ_BLOCK_BYTES = 4 << 20  # small, so that the first results come early
ALARMS_EXIT_CODE, INTERRUPTED_EXIT_CODE = 1, 130
DEFAULT_ALARMS_PATH = Path("alarms.csv")
PROBE_BYTES = 1 << 16
MAX_KEPT_ALARMS = 50_000  # sinks receive all of them


@dataclass
class DetectionRun:
    """Results of a run: counts, first alarms, and the points of a single stream."""

    path: Path
    plan: MonitorPlan
    stats: RunStats = field(default_factory=RunStats)
    alarms: list[Alarm] = field(default_factory=list)  # the key is the name of the stream
    alarm_records: list[dict[str, Any]] = field(default_factory=list)
    summary: MinMaxSummary | None = None

    def on_batch(self, results: BatchResult) -> None:
        """Add the results of a batch."""
        batch, trace = results.batch, results.trace
        if trace.alarms and len(self.alarms) < MAX_KEPT_ALARMS:
            named = zip(results.alarms, trace.alarms, strict=True)
            self.alarms += [replace(alarm, key=raised.key) for alarm, raised in named]
            self.alarm_records += results.alarm_records()
        if not isinstance(self.plan.learner_or_fleet, Fleet):
            self.summary = self.summary or MinMaxSummary(batch.names or self.plan.schema.values)
            self.summary.add(batch.values, trace, last_estimate(trace), batch.times)


def run_detect(file: str, values: dict[str, Any], console: Console) -> None:
    """Detect, print and write; exit with code 1 on alarms under --fail-on-alarm."""
    path = Path(file)
    _check_file(file)
    is_json = values["output_format"] == "json"
    report = None if values["no_report"] else _check_report(values["report"], console, quiet=is_json)
    if not values["alarms"] and not is_json:
        values = values | {"alarms": _get_default_alarm_uris(console)}
    destinations = get_destinations(values)
    outputs = [("report", str(report))] * (report is not None) + destinations
    check_not_input(file, outputs)
    _check_outputs(outputs)
    try:
        probed = ProbedSource(_open_source(path, values))
        learner = make_learner(values)
        if not probed.wait_for_schema(threading.Event()) or probed.schema is None:
            raise InvalidInputError(f"FILE: must have a readable record, got {path}{_describe_first_error(probed)}.")
        plan = MonitorPlan.from_schema(probed.schema, learner, joint=values["joint"], max_keys=values["max_keys"])
        if values["fail_on_alarm"] and not plan.raises_alarms:
            raise InvalidInputError("--fail-on-alarm: requires --learner detector; sra raises no alarms.")
        if not is_json:
            print_schema(console, path, plan)
        if report is not None:
            from limpet.plots._style import load_matplotlib

            drawing = load_matplotlib()
        run = DetectionRun(path, plan)
        sink = MultiSink([open_sink(uri, table, overwrite=True) for table, uri in destinations])
        with _show_progress(console, path, quiet=is_json) as advance:

            def on_batch(results: BatchResult) -> None:
                run.on_batch(results)
                advance(results.batch.lag)

            record = None if isinstance(plan.learner_or_fleet, Fleet) else "means"
            source = plan.wrap_source(probed)
            runner = Runner(source, plan.learner_or_fleet, sink, late=values["late"], on_batch=on_batch, record=record)
            run.stats = runner.run()
        if report is not None:
            drawing.join()
            with nullcontext() if is_json else console.status("drawing …"):
                _write_report(report, run, values)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    output_uris = [redact_url(uri) for _, uri in outputs]
    if is_json:
        sys.stdout.write(json.dumps(_to_dict(run, output_uris), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_summary(console, run, values["max_alarms"], output_uris)
    runner.raise_if_undelivered()
    if values["fail_on_alarm"] and run.stats.n_alarms:
        raise typer.Exit(ALARMS_EXIT_CODE)


def _check_file(file: str) -> None:
    path = Path(file)
    if file == "-":
        raise InvalidInputError("FILE: must be a file. `limpet watch - --no-follow` reads standard input.")
    if local_path(file) is None:
        raise InvalidInputError(
            f"FILE: must be a file, got {redact_url(file)}. `limpet watch URL --no-follow` reads it."
        )
    if path.is_dir():
        raise InvalidInputError(
            f"FILE: must be a file, got the folder {path}. `limpet watch {path} --no-follow` reads the files in it."
        )
    if not path.exists():
        raise InvalidInputError(f"FILE: must exist, got {path}.")


def _check_report(path: Path, console: Console, quiet: bool) -> Path | None:
    """Return the path of the report; None if packages for it are missing."""
    try:
        check_report(path)
    except MissingExtraError as error:
        if not quiet:
            console.print(f"No report: {error}", markup=False, highlight=False, style="yellow", soft_wrap=True)
        return None
    return path


def _get_default_alarm_uris(console: Console) -> list[str]:
    """Return the default alarms file; none if it exists and limpet did not write it."""
    if _is_overwritable(DEFAULT_ALARMS_PATH):
        return [str(DEFAULT_ALARMS_PATH)]
    message = f"{DEFAULT_ALARMS_PATH} was not written by limpet and is kept. --alarms names another file."
    console.print(message, style="yellow", markup=False)
    return []


def _is_overwritable(path: Path) -> bool:
    """Return whether a file is missing, empty, or has results or a page of limpet."""
    suffix = path.suffix.lower()
    if not path.is_file() or not path.stat().st_size or suffix in DATABASE_SUFFIXES:  # the sink checks its tables
        return True
    if suffix in (".html", ".htm"):
        with path.open("rb") as page:
            return GENERATOR.encode() in page.read(PROBE_BYTES)
    names = _read_column_names(path)
    is_points = names[:1] == ["record"] and set(RESULT_FIELDS) <= set(names)
    return is_points or names == list(ALARM_COLUMNS)


def _read_column_names(path: Path) -> list[str]:
    """Return the column names of a file by its suffix; none for other formats."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        pa = import_pyarrow()
        try:
            return list(pa.parquet.read_schema(path).names)
        except pa.ArrowInvalid:
            return []
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline(PROBE_BYTES)
    try:
        record = json.loads(line)
    except ValueError:
        return next(csv.reader([line]), [])
    return list(record) if isinstance(record, dict) else []


def check_not_input(source: str, outputs: list[tuple[str, str]]) -> None:
    """Raise if an output (option, URI) is the input or in a watched folder."""
    input_path = local_path(source)
    if input_path is None or not input_path.exists():
        return
    for option, uri in outputs:
        path = local_path(uri)
        if path is None:
            continue
        if path.exists() and path.samefile(input_path):
            raise InvalidInputError(f"--{option}: must not be the input file, got {uri}. Give another name.")
        if input_path.is_dir() and path.resolve().parent == input_path.resolve():
            raise InvalidInputError(f"--{option}: must not be in the input folder, got {uri}. Give another one.")


def _check_outputs(outputs: list[tuple[str, str]]) -> None:
    """Raise for a file that limpet did not write, a watch owns, or two tables share."""
    resolved = [(*output, path.resolve()) for output in outputs if (path := local_path(output[1])) is not None]
    counts = Counter(path for _, _, path in resolved)
    for option, uri, path in resolved:
        if counts[path] > 1 and path.suffix.lower() not in DATABASE_SUFFIXES:
            raise InvalidInputError(f"--{option}: must not be another output, got {uri}. Name a file for each.")
        if OwnerLockFile(path).read() is not None:
            raise InvalidInputError(f"--{option}: must not be the output of a watch, got {uri}. Give another name.")
        if not _is_overwritable(path):
            raise InvalidInputError(f"--{option}: must not be another program's file, got {uri}. Rename or remove it.")


def _open_source(path: Path, values: dict[str, Any]) -> BaseSource:
    spec = ColumnSpec(**get_column_names(values))
    return open_file_source(path, spec, values["input_format"], block_bytes=READ_BLOCK_BYTES)


def _describe_first_error(probed: ProbedSource) -> str:
    """Return why the first malformed record could not be read."""
    first = next((error for batch in probed.read() for error in batch.malformed.first), None)
    return "" if first is None else f" ({first})"


@contextmanager
def _show_progress(console: Console, path: Path, quiet: bool) -> Iterator[Any]:
    """Show a progress bar by the bytes that remain."""
    if quiet or not console.is_terminal:
        yield lambda lag: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        size = path.stat().st_size
        task = bar.add_task("learning", total=size)
        yield lambda lag: None if lag is None else bar.update(task, completed=size - lag)


def _write_report(path: Path, run: DetectionRun, values: dict[str, Any]) -> None:
    """Write the report; some of many streams are read again, to draw them."""
    plan, stats = run.plan, run.stats
    streams = [StreamReport("", run.summary, run.alarms)]
    if isinstance(plan.learner_or_fleet, Fleet):
        streams = list_streams(plan, run.alarms, values["late"], _open_source(run.path, values))
    report = DetectionReport(
        title=run.path.name,
        schema=plan.schema,
        streams=streams,
        alarms=run.alarms,
        n_points=stats.points,
        n_rejected=stats.rejected,
        n_invalid=stats.invalid.total,
        n_records=stats.records,
        n_skipped=stats.late + stats.duplicates,
        malformed=stats.malformed,
        far=plan.learner.far if isinstance(plan.learner, Detector) else None,
        joint=not plan.is_split,
        settings=repr(plan.learner),
        command=shlex.join(["limpet", *map(redact_url, sys.argv[1:])]),
        n_streams=plan.n_streams,
        n_changes=stats.alarms["change"],
        n_anomalies=stats.alarms["anomaly"],
    )
    write_detection(path, report)


def _to_dict(run: DetectionRun, output_uris: list[str]) -> dict[str, Any]:
    schema, stats, n_alarms = run.plan.schema, run.stats, run.stats.n_alarms
    names = ("records", "points", "rejected", "anomalies", "late", "duplicates")
    columns = {"columns": list(schema.values), "time": schema.time, "key": schema.key}
    errors = {"malformed": stats.malformed, "invalid": stats.invalid}
    return {
        "file": str(run.path),
        "schema": columns | {"separate": run.plan.is_split, "ignored": schema.ignored},
        "raises_alarms": run.plan.raises_alarms,
        "counts": {name: getattr(stats, name) for name in names}
        | {"alarms": n_alarms, **{name: log.total for name, log in errors.items()}},
        **{name: log.to_dict() for name, log in errors.items()},
        "alarms": run.alarm_records,
        "n_alarms_omitted": n_alarms - len(run.alarms),
        "outputs": output_uris,
    }


# What `limpet detect` prints.


def print_schema(console: Console, path: Path, plan: MonitorPlan) -> None:
    """Print the inferred columns."""
    console.print(Text(str(path), style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, value in plan.describe():
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    console.print(grid)
    for hint in plan.schema.hints:
        console.print(Text(f"  hint: {hint}", style="yellow"))


def print_summary(console: Console, run: DetectionRun, max_alarms: int, output_uris: list[str]) -> None:
    """Print the counts, the alarms, the malformed records, and the output names."""
    stats = run.stats
    console.print(Text(f"\n{summary_line(stats, run.plan.raises_alarms)}"))
    for sentence in caveats(run):
        console.print(Text(sentence, style="yellow"))
    console.print()
    if run.alarms and max_alarms:
        top = [run.alarm_records[index] for index in most_important(run.alarms, max_alarms)]
        console.print(make_alarm_table(top))
        if stats.n_alarms > len(top):
            note = f"… the {len(top)} most important; {stats.n_alarms - len(top):,} more are in the results"
            console.print(Text(note, style="dim"))
        console.print()
    print_input_errors(console, stats)
    if output_uris:
        console.print(Text(f"Written: {', '.join(output_uris)}"), soft_wrap=True)


def caveats(run: DetectionRun) -> list[str]:
    """Return what qualifies the alarms, or their absence, in sentences."""
    plan, stats, sentences = run.plan, run.stats, []
    if not isinstance(plan.learner, Detector):
        return []
    if stats.n_alarms:
        far = plan.learner.far
        n_expected = expected_false_alarms(far, stats.points)
        sentences.append(f"Expected false alarms at --far {far:g}: {n_expected} of each kind.")
    if plan.n_warming_up:
        subject = f"{plan.n_warming_up:,} of {plan.n_streams:,} streams are" if plan.n_streams > 1 else "The stream is"
        n_init, n_warmup = plan.learner.n_init, warmup_points(plan.learner)
        sentences.append(
            f"{subject} too short for every kind of alarm: the first {n_init:,} points are for initialization, "
            f"and change alarms need more than {n_warmup:,}."
        )
    if isinstance(plan.learner_or_fleet, Detector):
        sentences += [f"{advice}." for advice in plan.learner_or_fleet.residual_advice()]
    return sentences


def summary_line(stats: RunStats, raises_alarms: bool = True) -> str:
    """Return the counts in a sentence or two.

    >>> summary_line(RunStats(records=1000, points=1000, rejected=7))
    '1,000 records; 7 points rejected as outliers. No alarm.'
    """
    points = f" with {stats.points:,} points" if stats.points > stats.records else ""
    lead = f"{plural(stats.records, 'record')}{points}; {plural(stats.rejected, 'point')} rejected as outliers. "
    if not raises_alarms:
        return lead + "The learner sra raises no alarms."
    kinds = [(stats.alarms["change"], "change", "changes"), (stats.alarms["anomaly"], "anomaly", "anomalies")]
    counts = " and ".join(plural(*kind) for kind in kinds if kind[0])
    return lead + (f"Alarms: {counts}." if counts else "No alarm.")


def make_alarm_table(alarms: list[dict[str, Any]]) -> Table:
    """Return a table with one row per alarm; rows are counted per stream, from 0."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    has_time, has_key = alarms[0]["time"] is not None, any(alarm["key"] is not None for alarm in alarms)
    headings = ["time"] * has_time + ["stream"] * has_key + ["row", "kind", "variables", "size", "since row"]
    for heading in headings:
        right = heading in ("row", "since row")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading in ("time", "row", "kind"))
    for alarm in alarms:
        since = f"{alarm['onset']:,}" if alarm["onset"] != alarm["row"] else ""
        cells = [str(alarm["time"])] * has_time + [str(alarm["key"])] * has_key + [f"{alarm['row']:,}"]
        style = "bold" if alarm["kind"] == "change" else ""
        variables = Text(", ".join(alarm["variables"]))
        table.add_row(*map(Text, cells), Text(alarm["kind"], style=style), variables, Text(format_size(alarm)), since)
    return table


def format_size(alarm: dict[str, Any]) -> str:
    """Return the size of an alarm.

    >>> format_size({"direction": "up", "size": 3.21}), format_size({"direction": "wider", "size": 2.0})
    ('up by 3.2 sd', 'wider, × 2')
    """
    direction, size = alarm["direction"], alarm["size"]
    if size is None:
        return str(direction)
    size_text = f"{size:,.0f}" if size >= 99.5 else f"{size:.2g}"
    return f"{direction} by {size_text} sd" if direction in ("up", "down") else f"{direction}, × {size_text}"


def print_input_errors(console: Console, stats: RunStats) -> None:
    """Print malformed and invalid input by reason with examples, and skipped points."""
    for log, noun in ((stats.malformed, "malformed record"), (stats.invalid, "invalid point")):
        if log.total:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in log.counts.most_common())
            console.print(Text(f"{plural(log.total, noun)}: {reasons}. The first:", style="yellow"))
        for error in log.first:
            console.print(Text(f"  {error}", style="dim"), no_wrap=True, overflow="ellipsis")
    if stats.late or stats.duplicates:
        skipped = f"{plural(stats.late, 'late point')} and {plural(stats.duplicates, 'duplicate')} skipped"
        console.print(Text(f"{skipped}; --late learn learns them.", style="yellow"))
    if stats.late > stats.points:
        message = "Most points are older than an earlier one. Check that rows ascend in time and that times are valid."
        console.print(Text(message, style="yellow"))
