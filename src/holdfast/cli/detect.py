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
from holdfast.cli.arrangement import Arrangement
from holdfast.cli.detect_page import write_page
from holdfast.cli.outputs import default_alarms, refuse_others_files, refuse_own_input, sinks_of
from holdfast.errors import BadInputError
from holdfast.fleet import Fleet
from holdfast.streams.columns import Wanted
from holdfast.streams.peeked import Peeked
from holdfast.streams.places import file_at, shown
from holdfast.streams.results import Results
from holdfast.streams.runner import Runner
from holdfast.streams.sinks import Several
from holdfast.streams.sketch import Sketch, estimate_of
from holdfast.streams.source import Source
from holdfast.streams.tally import Tally

if TYPE_CHECKING:
    from rich.console import Console

AT_ONCE = 4 << 20  # bytes: nobody waits for the first results
KEPT = 50_000  # alarms that are kept to be shown; sinks get all
ALARMS_FOUND, INTERRUPTED = 1, 130


class Raised(NamedTuple):
    """An alarm: as it was raised, as a row of results, and the name of its stream where there are several."""

    alarm: Alarm
    row: dict[str, Any]
    stream: str | int | None


@dataclass
class Found:
    """What came of a file: counts, the first alarms, and if it is one stream a sketch of it."""

    path: Path
    arrangement: Arrangement
    tally: Tally = field(default_factory=Tally)
    raised: list[Raised] = field(default_factory=list)
    sketch: Sketch | None = None

    def most_telling(self, most: int) -> list[dict[str, Any]]:
        """So many alarms in the order in which they came: changes before anomalies, and the largest of them."""
        by_weight = sorted(range(len(self.raised)), key=lambda i: _weight(self.raised[i].row), reverse=True)
        return [self.raised[i].row for i in sorted(by_weight[:most])]

    def see(self, results: Results) -> None:
        """The results of a batch."""
        batch, trace = results.batch, results.trace
        if trace.alarms and len(self.raised) < KEPT:
            streams = [alarm.key for alarm in trace.alarms]
            self.raised += map(Raised, results.alarms, results.alarm_rows(), streams)
        if not isinstance(self.arrangement.model, Fleet):
            self.sketch = self.sketch or Sketch(batch.names or self.arrangement.columns.values)
            self.sketch.add(batch.values, trace, estimate_of(trace), batch.times)


def _weight(alarm: dict[str, Any]) -> tuple[bool, float]:
    size = math.inf if alarm["size"] is None else alarm["size"]
    is_shift = alarm["direction"] in ("up", "down")
    return alarm["kind"] == "change", size if is_shift else 2.0 * abs(math.log(max(size, 1e-9)))


def run_detect(file: str, values: dict[str, Any], console: Console) -> None:
    """Detects, prints, writes; leaves with 1 if that is wanted for alarms."""
    from holdfast.cli.detect_words import show_found, show_understood

    path = Path(file)
    _check_file(path)
    report = None if str(values["report"]) == "none" else values["report"]
    if report is not None:
        from holdfast.plots.report import require_writable

        require_writable(report)
    machine = values["format"] == "json"
    places = {name: values[name] for name in ("alarms", "points")}
    if places["alarms"] is None and not machine:
        places["alarms"] = default_alarms(console)
    written = [str(report)] * (report is not None) + [place for listed in places.values() for place in listed or ()]
    refuse_own_input(file, *written)
    refuse_others_files(*written)
    try:
        source = _source(path, values)
        peeked = Peeked(source)
        if not peeked.look(threading.Event()) or peeked.columns is None:
            raise BadInputError(f"{path}: there is not one record that can be read{_why(peeked)}")
        arrangement = Arrangement.of(peeked.columns, values)
        if values["fail_on_alarm"] and not arrangement.raises_alarms:
            raise BadInputError("--fail-on-alarm: set by hand, by --gamma, --rho or --M, no alarms are raised")
        if not machine:
            show_understood(console, path, arrangement)
        if report is not None:
            from holdfast.plots.style import prepared_drawing

            drawing = prepared_drawing()
        found = Found(path, arrangement)
        sinks = sinks_of(places, anew=True)
        with _progress(console, path, quiet=machine) as advance:
            runner = _run(found, peeked, Several(sinks), values["late"], advance)
            found.tally = runner.tally
        if report is not None:
            drawing.join()
            write_page(report, found, values, lambda: _source(path, values), console, quiet=machine)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    written = list(map(shown, written))
    if machine:
        sys.stdout.write(json.dumps(_as_json(found, written), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        show_found(console, found, values["show"], written)
    runner.require_delivered()
    if values["fail_on_alarm"] and found.tally.n_alarms:
        raise typer.Exit(ALARMS_FOUND)


def _run(found: Found, peeked: Peeked, sink: Several, late: str, advance: Any) -> Runner:
    arrangement = found.arrangement

    def see(results: Results) -> None:
        found.see(results)
        advance(results.batch.behind)

    record = None if isinstance(arrangement.model, Fleet) else "means"
    runner = Runner(arrangement.source(peeked), arrangement.model, sink, late=late, seen=see, record=record)
    runner.run()
    return runner


def _source(path: Path, values: dict[str, Any]) -> Source:
    columns = None if not values["columns"] else tuple(values["columns"])
    return file_at(path, Wanted(columns, values["key"], values["time"]), values["form"], at_once=AT_ONCE)


def read_alone(file: str) -> int:
    """Reads a file as `detect` does and learns nothing, for the benchmark to compare with; the number of points."""
    everything = {"columns": None, "key": None, "time": None, "form": None}
    return sum(len(batch) for batch in _source(Path(file), everything).read(None))


def _check_file(path: Path) -> None:
    if str(path) == "-":
        raise BadInputError("detect looks at a file: `holdfast watch - --once` reads what is piped in")
    if path.is_dir():
        raise BadInputError(f"{path} is a folder: `holdfast watch {path} --once` reads the files in it")
    if not path.exists():
        raise BadInputError(f"there is no file {path}")


def _why(peeked: Peeked) -> str:
    """The first reason why records could not be read."""
    first = next((one for batch in peeked.read() for one in batch.refused.first), None)
    return "" if first is None else f" ({first})"


@contextmanager
def _progress(console: Console, path: Path, quiet: bool) -> Iterator[Any]:
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


def _as_json(found: Found, written: list[str]) -> dict[str, Any]:
    columns = found.arrangement.columns
    tally = found.tally.as_json()
    counts = {name: tally[name] for name in ("records", "points", "dropped", "anomalies", "late", "repeated")}
    return {
        "file": str(found.path),
        "understood": {
            "columns": list(columns.values),
            "time": columns.time,
            "key": columns.key,
            "separate": found.arrangement.separate,
            "left_out": columns.left_out,
        },
        "raises_alarms": found.arrangement.raises_alarms,
        "counts": counts | {"alarms": found.tally.n_alarms, "refused": found.tally.refused.total},
        "refused": tally["refused"],
        "alarms": [one.row for one in found.raised],
        "alarms_not_listed": found.tally.n_alarms - len(found.raised),
        "written": written,
    }
