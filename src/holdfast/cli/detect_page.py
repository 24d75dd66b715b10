"""The page that `holdfast detect` writes."""

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.cli.arrangement import Arrangement
from holdfast.fleet import Fleet
from holdfast.fleet.keys import Texts
from holdfast.learners import Trace
from holdfast.learners.reading import NamedRows
from holdfast.plots.alarm_map import STRIPS
from holdfast.plots.detection import Detection, Shown, TimedAlarm, write_detection
from holdfast.streams.batch import Integers
from holdfast.streams.lateness import Lateness
from holdfast.streams.places import shown
from holdfast.streams.separate import stream_keys
from holdfast.streams.sketch import Sketch
from holdfast.streams.source import Source
from holdfast.streams.tally import BEYOND, NO_VALUE

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.cli.detect import Found


def write_page(
    path: Path, found: Found, values: dict[str, Any], again: Callable[[], Source], console: Console, quiet: bool
) -> None:
    """Writes the page. again: opens the file anew, for the pictures of some of many streams."""
    with console.status("drawing …") if not quiet else _Nothing():
        model, tally = found.arrangement.model, found.tally
        streams = _streams(found, values["late"], again) if isinstance(model, Fleet) else [_only(found)]
        detection = Detection(
            title=found.path.name,
            columns=found.arrangement.columns,
            streams=streams,
            alarms=[
                TimedAlarm(alarm, "" if row["time"] is None else str(row["time"]), stream or "")
                for alarm, row, stream in zip(found.raised, found.alarms, found.streams, strict=True)
            ],
            n_points=tally.points,
            n_dropped=tally.dropped,
            n_bad=tally.refused.counts[NO_VALUE] + tally.refused.counts[BEYOND],
            n_records=tally.records,
            late=tally.late + tally.repeated,
            refused=tally.refused,
            far=values["far"],
            joint=not found.arrangement.separate,
            hints=found.arrangement.columns.hints,
            settings=repr(model.model if isinstance(model, Fleet) else model),
            command=shlex.join(["holdfast", *map(shown, sys.argv[1:])]),
            n_streams=len(model) if isinstance(model, Fleet) else 1,
            n_changes=tally.alarms["change"],
            n_anomalies=tally.alarms["anomaly"],
        )
        trouble = write_detection(path, detection)
    if trouble and not quiet:
        console.print(trouble, markup=False, style="yellow")


class _Nothing:
    """Shows nothing while something is done."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def _only(found: Found) -> Shown:
    """The one stream that there is."""
    return Shown("", found.sketch, found.raised)


def _streams(found: Found, late: str, again: Callable[[], Source]) -> list[Shown]:
    """The streams of a fleet, those with most alarms first; the first of them with a sketch."""
    fleet = found.arrangement.model
    assert isinstance(fleet, Fleet)
    alarms: dict[Any, list[Alarm]] = defaultdict(list)
    for alarm, stream in zip(found.raised, found.streams, strict=True):
        alarms[stream].append(alarm)
    counts = fleet.counts()
    order = sorted(range(len(counts["key"])), key=lambda i: (-len(alarms[counts["key"][i]]), i))
    names = [str(counts["key"][i]) for i in order]
    sketches = _sketches(found.arrangement, names[:STRIPS], late, again())
    return [
        Shown(name, sketches.get(name), alarms[name], int(counts["n_seen"][i]), int(counts["n_dropped"][i]))
        for name, i in zip(names, order, strict=True)
    ]


def _sketches(arrangement: Arrangement, names: Sequence[str], late: str, source: Source) -> dict[str, Sketch]:
    """Sketches of some streams, with estimates: each is learnt once more by itself, which gives the same."""
    fleet = arrangement.model
    assert isinstance(fleet, Fleet)
    learners = {name: fleet.model.clone() for name in names}
    for learner in learners.values():
        learner._is_told_elsewhere("bad")
    sketches: dict[str, Sketch] = {}
    sieve = Lateness(late)
    for batch in arrangement.source(source).read(None):
        taken, _, _ = sieve.sift(batch)
        keys = stream_keys(taken)
        if keys is None or not len(taken) or taken.names is None:
            continue
        for name, own in _rows_of(keys, names):
            points = taken.values[own]
            trace = learners[name].process(NamedRows(points, taken.names), record="means")
            sketch = sketches.setdefault(name, Sketch(taken.names))
            sketch.add(points, trace, middle(trace), None if taken.times is None else taken.times[own])
    return sketches


def _rows_of(keys: Texts, names: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Which points are those of each of these streams, for those that have some."""
    number = {name: place for place, name in enumerate(names)}
    of_code = np.array([number.get(name, len(names)) for name in (*keys.values, None)], np.int16)  # −1 is the last one
    of_point = of_code[:-1] if keys.codes is None else of_code[keys.codes]
    order = np.argsort(of_point, kind="stable")
    edges = np.searchsorted(of_point[order], np.arange(len(names) + 1))
    for name, begin, end in zip(names, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end > begin:
            yield name, order[begin:end]


def middle(trace: Trace) -> Any:
    """The estimate after each row, of one component; of several there is no single one."""
    means = trace.recorded.get("means")
    return None if means is None or means.shape[1] != 1 else means[:, 0]
