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
from limpet.streams.batch import MAX_KEPT_ERRORS
from limpet.streams.formats.json import (
    MAX_RECORD_BYTES,
    NO_TIME_REASON,
    NOT_A_RECORD,
    NOT_JSON,
    NOT_UTF8,
    RECORD_TOO_LONG,
)
from limpet.streams.results import NO_VALUE, OUT_OF_RANGE, OUT_OF_SUPPORT

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

N_VALID, N_MALFORMED, N_LONG = 30_000, 100_000, 2
LineFactory = Callable[[int], bytes]
"""Make a line whose time is a number."""

MALFORMED_JSON: list[tuple[str, LineFactory]] = [
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
    (NO_TIME_REASON, lambda i: b'{"a": 1.5}'),
    (NO_TIME_REASON, lambda i: b'{"time": "soon", "a": 1.5}'),
    (NO_TIME_REASON, lambda i: b'{"time": 1e999, "a": 1.5}'),
    (NOT_UTF8, lambda i: b'{"time": %d, "a": 1.5, "note": "\xff"}' % i),
    (NO_VALUE, lambda i: b'{"time": %d, "a": NaN}' % i),
    (NO_VALUE, lambda i: b'{"time": %d, "a": null}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": 1e400}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": -Infinity}' % i),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": %s}' % (i, b"9" * 400)),
    (OUT_OF_RANGE, lambda i: b'{"time": %d, "a": 1e200}' % i),
]
MALFORMED_CSV: list[tuple[str, LineFactory]] = [
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
    (NO_TIME_REASON, lambda i: b",1.5,x"),
    (NO_TIME_REASON, lambda i: b"soon,1.5,x"),
    (NO_TIME_REASON, lambda i: b"1e999,1.5,x"),
    (NOT_UTF8, lambda i: b"%d,1\xff,x" % i),
    (NO_VALUE, lambda i: b"%d,NaN,x" % i),
    (NO_VALUE, lambda i: b"%d,,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,1e400,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,-inf,x" % i),
    (OUT_OF_RANGE, lambda i: b"%d,%s,x" % (i, b"9" * 400)),
    (OUT_OF_RANGE, lambda i: b"%d,1e200,x" % i),
]


@pytest.mark.parametrize("file_format", ["jsonl", "csv"])
def test_malformed_records_do_not_change_results(tmp_path: Path, file_format: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(20.0, 0.5, N_VALID) + 3.0 * (np.arange(N_VALID) > N_VALID // 2)
    values[rng.integers(0, N_VALID, 30)] = 40.0
    makers = MALFORMED_JSON if file_format == "jsonl" else MALFORMED_CSV
    plan: list[int] = [-1] * N_VALID + [i % len(makers) for i in range(N_MALFORMED - N_LONG)] + [len(makers)] * N_LONG
    random.Random(0).shuffle(plan)
    expected_counts: Counter[str] = Counter()
    lines, valid_lines, numbers, expected_errors = [], [], [], []
    for i, kind in enumerate(plan):
        if kind < 0:
            value = values[len(numbers)].item()
            line = b'{"time": %d, "a": %r}' % (i, value) if file_format == "jsonl" else b"%d,%r,x" % (i, value)
            numbers.append(i)
            valid_lines.append(line)
        else:
            reason, line = (
                (RECORD_TOO_LONG, b"x" * 10_000_000) if kind == len(makers) else (makers[kind][0], makers[kind][1](i))
            )
            expected_counts[reason] += 1
            expected_errors.append((reason, i))
        lines.append(line)
    names = [] if file_format == "jsonl" else [b"time,a,note"]
    (tmp_path / f"all.{file_format}").write_bytes(b"\n".join([*names, *lines]))
    (tmp_path / f"valid.{file_format}").write_bytes(b"\n".join([*names, *valid_lines]))

    valid_only, mixed = run_detector(tmp_path / f"valid.{file_format}"), run_detector(tmp_path / f"all.{file_format}")
    stats, invalid_reasons = mixed["stats"], (NO_VALUE, OUT_OF_RANGE)
    assert stats.malformed.counts + stats.invalid.counts == expected_counts
    assert set(stats.invalid.counts) == set(invalid_reasons)
    assert not set(stats.malformed.counts) & set(invalid_reasons)
    assert sum(expected_counts.values()) == N_MALFORMED
    assert expected_counts[RECORD_TOO_LONG] == N_LONG
    assert mixed["stats"].records == N_VALID + N_MALFORMED
    assert mixed["records"] == numbers
    assert valid_only["records"] == list(range(N_VALID))
    for name in ("score", "change_score", "p_value", "rejected", "anomaly", "change"):
        assert b"".join(mixed[name]) == b"".join(valid_only[name]), name
    assert [numbers[record] for record in valid_only["alarms"]] == mixed["alarms"]
    assert len(valid_only["alarms"]) > 5
    for log, is_invalid in ((stats.malformed, False), (stats.invalid, True)):
        expected = [error for error in expected_errors if (error[0] in invalid_reasons) == is_invalid]
        assert [(error.reason, error.index) for error in log.first] == expected[:MAX_KEPT_ERRORS]
    assert MAX_RECORD_BYTES < 10_000_000


def run_detector(path: Path) -> dict[str, Any]:
    """Return the results of the valid points of a file."""
    collected: dict[str, Any] = {name: [] for name in ("records", "alarms")}

    def on_results(results: BatchResult) -> None:
        is_valid = ~results.trace.invalid
        collected["records"] += results.record_indexes[is_valid].tolist()
        collected["alarms"] += [row["record"] for row in results.alarm_records()]
        for name in ("score", "change_score", "p_value", "rejected", "anomaly", "change"):
            collected.setdefault(name, []).append(np.asarray(getattr(results.trace, name))[is_valid].tobytes())

    collected["stats"] = lp.run(path, lp.Detector(), on_results).stats
    return collected


def test_points_outside_the_support_have_their_own_reason():
    class Counts(lp.streams.BaseSource):
        def read(self, position):
            yield lp.streams.Batch(
                np.array([3.0, np.nan, -3.0, 2.5, 1e200] + [4.0] * (MAX_KEPT_ERRORS + 20)), position=1
            )
            yield lp.streams.Batch(np.array([-1.0] * (MAX_KEPT_ERRORS + 5)), position=2)

    learner = lp.SRA(model=lp.models.PoissonMixture(1), gamma=9.0, rho=0.1)
    invalid = lp.run(Counts(), learner).stats.invalid
    assert dict(invalid.counts) == {NO_VALUE: 1, OUT_OF_RANGE: 1, OUT_OF_SUPPORT: 2 + MAX_KEPT_ERRORS + 5}
    assert [error.reason for error in invalid.first][:4] == [NO_VALUE, OUT_OF_SUPPORT, OUT_OF_SUPPORT, OUT_OF_RANGE]
