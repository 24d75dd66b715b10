"""The page that `holdfast detect` writes."""

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.cli.arrangement import Arrangement
from holdfast.fleet import Fleet
from holdfast.fleet.keys import Texts
from holdfast.learners.reading import NamedRows
from holdfast.plots.alarm_map import STRIPS
from holdfast.plots.detection import Detection, Shown, TimedAlarm, write_detection
from holdfast.streams.batch import Integers
from holdfast.streams.lateness import Lateness
from holdfast.streams.places import shown
from holdfast.streams.separate import stream_keys
from holdfast.streams.sketch import Sketch, estimate_of
from holdfast.streams.source import Source
from holdfast.streams.tally import BEYOND, NO_VALUE

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.cli.detect import Found


def write_page(
    path: Path, found: Found, values: dict[str, Any], again: Callable[[], Source], console: Console, quiet: bool
) -> None:
    """Writes the page. again: opens the file anew, for the pictures of some of many streams."""
    with nullcontext() if quiet else console.status("drawing …"):
        arrangement, tally = found.arrangement, found.tally
        several = isinstance(arrangement.model, Fleet)
        alarms = [one.alarm for one in found.raised]
        streams = _streams(found, values["late"], again) if several else [Shown("", found.sketch, alarms)]
        detection = Detection(
            title=found.path.name,
            columns=arrangement.columns,
            streams=streams,
            alarms=[
                TimedAlarm(one.alarm, "" if one.row["time"] is None else str(one.row["time"]), str(one.stream or ""))
                for one in found.raised
            ],
            n_points=tally.points,
            n_dropped=tally.dropped,
            n_bad=tally.refused.counts[NO_VALUE] + tally.refused.counts[BEYOND],
            n_records=tally.records,
            late=tally.late + tally.repeated,
            refused=tally.refused,
            far=arrangement.learner.far if arrangement.raises_alarms else None,
            joint=not arrangement.separate,
            hints=arrangement.columns.hints,
            settings=repr(arrangement.learner),
            command=shlex.join(["holdfast", *map(shown, sys.argv[1:])]),
            n_streams=arrangement.n_streams,
            n_changes=tally.alarms["change"],
            n_anomalies=tally.alarms["anomaly"],
        )
        trouble = write_detection(path, detection)
    if trouble and not quiet:
        console.print(trouble, markup=False, style="yellow")


def _streams(found: Found, late: str, again: Callable[[], Source]) -> list[Shown]:
    """The streams of a fleet, those with most alarms first; the first of them with a sketch."""
    fleet = found.arrangement.model
    assert isinstance(fleet, Fleet)
    alarms: dict[Any, list[Alarm]] = defaultdict(list)
    for one in found.raised:
        alarms[one.stream].append(one.alarm)
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
    learners = {name: arrangement.learner.clone() for name in names}
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
            sketch.add(points, trace, estimate_of(trace), None if taken.times is None else taken.times[own])
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
