"""100,000 malformed records among valid ones: results are the same, and each malformed record is counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limpet as lp
from limpet.streams import BatchResult
from limpet.streams.batch import MAX_KEPT_REJECTS
from limpet.streams.formats.json import MAX_RECORD_BYTES, NO_TIME, NOT_A_RECORD, NOT_JSON, NOT_UTF8, RECORD_TOO_LONG
from limpet.streams.results import NO_VALUE, OUT_OF_RANGE

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

N_GOOD, N_BAD, N_LONG = 30_000, 100_000, 2
Maker = Callable[[int], bytes]
"""Makes a line with a number as its time."""

BAD_JSON: list[tuple[str, Maker]] = [
    (NOT_JSON, lambda i: b'{"time": %d, "a": ' % i),
    (NOT_JSON, lambda i: b"time=%d a=1.5" % i),
    (NOT_JSON, lambda i: b"[" * 5000),
    (NOT_JSON, lambda i: b'{"time": %d, "a": %s}' % (i, b"9" * 5000)),  # more digits than Python reads
    (NOT_JSON, lambda i: b"\x00"),
    (NOT_A_RECORD, lambda i: b"null"),
    (NOT_A_RECORD, lambda i: b'"1.5"'),
    (NOT_A_RECORD, lambda i: b"[]"),
    ("no column 'a'", lambda i: b'{"time": %d, "A": 1.5}' % i),
    ("no column 'a'", lambda i: b"{}"),
    ("no column 'a'", lambda i: b"[1.5, 2.5]"),
    ("'a' is not a number", lambda i: b'{"time": %d, "a": "1.5"}' % i),
    ("'a' is not a number", lambda i: b'{"time": %d, "a": true}' % i),
    ("'a' is not a number", lambda i: b'{"time": %d, "a": {"b": [1]}}' % i),
    (NO_TIME, lambda i: b'{"a": 1.5}'),
    (NO_TIME, lambda i: b'{"time": "soon", "a": 1.5}'),
    (NO_TIME, lambda i: b'{"time": 1e999, "a": 1.5}'),
    (NOT_UTF8, lambda i: b'{"time": %d, "a": 1.5, "note": "\xff"}' % i),
    (NO_VALUE, lambda i: b'{"time": %d, "a": NaN}' % i),
    (NO_VALUE, lambda i: b'{"time": %d, "a": null}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": 1e400}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": -Infinity}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": %s}' % (i, b"9" * 400)),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": 1e200}' % i),
]
BAD_CSV: list[tuple[str, Maker]] = [
    ("not 3 fields", lambda i: b"%d" % i),
    ("not 3 fields", lambda i: b"%d,1.5,x,y" % i),
    ("not 3 fields", lambda i: b"\x00"),
    ("not 3 fields", lambda i: b'%d,"1.5,x' % i),
    ("not 3 fields", lambda i: b'{"time": %d}' % i),
    ("'a' is not a number", lambda i: b"%d,one,x" % i),
    ("'a' is not a number", lambda i: b'%d,"1,5",x' % i),
    ("'a' is not a number", lambda i: b"%d,0x10,x" % i),
    ("'a' is not a number", lambda i: b"%d,1\x00,x" % i),
    ("'a' is not a number", lambda i: b"time,a,note"),
    (NO_TIME, lambda i: b",1.5,x"),
    (NO_TIME, lambda i: b"soon,1.5,x"),
    (NO_TIME, lambda i: b"1e999,1.5,x"),
    (NOT_UTF8, lambda i: b"%d,1\xff,x" % i),
    (NO_VALUE, lambda i: b"%d,NaN,x" % i),
    (NO_VALUE, lambda i: b"%d,,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,1e400,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,-inf,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,%s,x" % (i, b"9" * 400)),
    (OUT_OF_RANGE, lambda i: b"%d,1e200,x" % i),
]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_malformed_records_do_not_change_results(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(20.0, 0.5, N_GOOD) + 3.0 * (np.arange(N_GOOD) > N_GOOD // 2)
    values[rng.integers(0, N_GOOD, 30)] = 40.0
    bad = BAD_JSON if form == "jsonl" else BAD_CSV
    plan: list[int] = [-1] * N_GOOD + [i % len(bad) for i in range(N_BAD - N_LONG)] + [len(bad)] * N_LONG
    random.Random(0).shuffle(plan)
    made: Counter[str] = Counter()
    lines, good_lines, numbers, first = [], [], [], []
    for i, kind in enumerate(plan):
        if kind < 0:
            value = values[len(numbers)].item()
            line = b'{"time": %d, "a": %r}' % (i, value) if form == "jsonl" else b"%d,%r,x" % (i, value)
            numbers.append(i)
            good_lines.append(line)
        else:
            reason, line = (RECORD_TOO_LONG, b"x" * 10_000_000) if kind == len(bad) else (bad[kind][0], bad[kind][1](i))
            made[reason] += 1
            first.append((reason, i))
        lines.append(line)
    names = [] if form == "jsonl" else [b"time,a,note"]
    (tmp_path / f"all.{form}").write_bytes(b"\n".join([*names, *lines]))
    (tmp_path / f"good.{form}").write_bytes(b"\n".join([*names, *good_lines]))

    alone, among = run(tmp_path / f"good.{form}"), run(tmp_path / f"all.{form}")
    assert among["stats"].malformed.counts == made
    assert sum(made.values()) == N_BAD
    assert made[RECORD_TOO_LONG] == N_LONG
    assert among["stats"].records == N_GOOD + N_BAD
    assert among["records"] == numbers
    assert alone["records"] == list(range(N_GOOD))
    for name in ("score", "change_score", "p_value", "rejected", "anomaly", "change"):
        assert b"".join(among[name]) == b"".join(alone[name]), name
    assert [numbers[record] for record in alone["alarms"]] == among["alarms"]
    assert len(alone["alarms"]) > 5
    kept = [(reject.reason, reject.index) for reject in among["stats"].malformed.first]
    assert len(kept) == MAX_KEPT_REJECTS
    malformed = [item for item in first if item[0] not in (NO_VALUE, OUT_OF_RANGE)]  # those are valid records
    assert [item for item in kept if item[0] not in (NO_VALUE, OUT_OF_RANGE)] == malformed[: len(kept)][
        :MAX_KEPT_REJECTS
    ]
    assert MAX_RECORD_BYTES < 10_000_000


def run(path: Path) -> dict[str, Any]:
    """Return the results of the valid points of a file."""
    got: dict[str, Any] = {name: [] for name in ("records", "alarms")}

    def on_results(results: BatchResult) -> None:
        good = ~results.trace.invalid
        got["records"] += results.record_indexes[good].tolist()
        got["alarms"] += [row["record"] for row in results.alarm_records()]
        for name in ("score", "change_score", "p_value", "rejected", "anomaly", "change"):
            got.setdefault(name, []).append(np.asarray(getattr(results.trace, name))[good].tobytes())

    got["stats"] = lp.run(path, lp.Detector(), on_results).stats
    return got
