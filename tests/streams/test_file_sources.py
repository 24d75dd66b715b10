"""Files, pipes and folders as sources: any batch size, any position, growing, replaced and damaged files."""

from __future__ import annotations

import gzip
import json
import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch, InputErrorLog
from limpet.streams.formats import iter_line_blocks
from limpet.streams.formats.json import MAX_RECORD_BYTES, NOT_JSON, RECORD_TOO_LONG
from limpet.streams.schema import ColumnSpec, Schema
from limpet.streams.sources.base import BaseSource
from limpet.streams.sources.directory import UNREADABLE_FILE, DirectorySource
from limpet.streams.sources.file import FileSource, StdinSource
from limpet.streams.timestamps import format_times
from limpet.streams.uri import open_file_source, open_source

Contents = tuple[list[list[float | None]], list[Any], int, Counter[str], list[tuple[int, str]]]


def collect(batches: list[Batch]) -> Contents:
    """Return values (None for NaN), times, number of records, malformed ones by reason, and the first of them."""
    values: list[list[float | None]] = []
    times: list[Any] = []
    errors = InputErrorLog()
    n = 0
    for batch in batches:
        values += np.where(np.isnan(batch.values), None, batch.values).tolist()
        times += [] if batch.times is None else format_times(batch.times)
        errors.merge(batch.malformed, n)
        n += batch.n_records
    return values, times, n, errors.counts, [(reject.index, reject.text) for reject in errors.first]


def resume(source: BaseSource, batch: Batch) -> list[Batch]:
    """Return the batches after a batch, as a run reads them that resumes there."""
    source.schema = batch.schema
    return list(source.read(json.loads(json.dumps(batch.position))))


def read(source: Any, position: Any = None) -> Contents:
    return collect(list(source.read(position)))


def read_until(
    batches: Iterator[Batch], condition: Callable[[list[Batch]], bool], seconds: float = 10.0
) -> list[Batch]:
    """Return batches of a live source until a condition holds; empty ones arrive regularly."""
    got: list[Batch] = []
    end = time.monotonic() + seconds
    while not condition(got):
        assert time.monotonic() < end, got
        got.append(next(batches))
        json.dumps(got[-1].position)
    return got


def has_points(n: int) -> Callable[[list[Batch]], bool]:
    return lambda got: sum(map(len, got)) >= n


def get_values(batches: list[Batch]) -> list[float]:
    return [row[0] for batch in batches for row in batch.values.tolist()]


# Cuts and positions

LINES = st.sampled_from(
    [b"1,2.5", b"2,x", b"3", b"", b"4,-1e5", b'5,"7"', b"6,\xff", b"7,8\r", b"1,2,3", b'8,"9', b"9,\r1", b"nan,0"]
)
RECORDS = st.sampled_from(
    [b'{"a":2}', b'{"time":2}', b"[", b"", b"  ", b'{"time":3,"a":"x"}', b'{"time":4,"a":1e5}\r', b"\xff", b"null"]
)


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
@given(data=st.data(), n=st.integers(1, 40), ended=st.booleans())
def test_any_block_size_and_any_position(
    tmp_path_factory: Any, data: Any, n: int, ended: bool, file_format: str
) -> None:
    path = tmp_path_factory.mktemp("cut") / f"x.{file_format}"
    begin = b"time,a\n0,1\n0,1\n" if file_format == "csv" else b'{"time":0,"a":1}\n' * 9
    lines = data.draw(st.lists(LINES if file_format == "csv" else RECORDS, max_size=12))
    path.write_bytes(begin + b"\n".join(lines) + (b"\n" if ended else b""))
    check_cuts_and_positions(path, n)


def check_cuts_and_positions(path: Path, n: int) -> None:
    whole = read(FileSource(path))
    batches = list(FileSource(path, block_bytes=n).read())
    assert collect(batches) == whole
    for i, batch in enumerate(batches):
        for block_bytes in (n, 1 << 18):
            assert collect([*batches[: i + 1], *resume(FileSource(path, block_bytes=block_bytes), batch)]) == whole
            rest = FileSource(path, block_bytes=block_bytes).read(batch.position)  # infers the schema again
            assert collect([*batches[: i + 1], *rest]) == whole


def test_gzipped_files(tmp_path: Path) -> None:
    content = b"time,a\n" + b"".join(b"%d,%d\n" % (i, i % 13) for i in range(20_000))
    (tmp_path / "x.csv").write_bytes(content)
    (tmp_path / "x.csv.GZ").write_bytes(gzip.compress(content))
    whole = read(FileSource(tmp_path / "x.csv"))
    batches = list(FileSource(tmp_path / "x.csv.GZ", block_bytes=1 << 16).read())
    assert collect(batches) == whole
    assert collect([*batches[:2], *FileSource(tmp_path / "x.csv.GZ").read(batches[1].position)]) == whole
    packed = gzip.compress(
        "".join(f"{value}\n" for value in np.random.default_rng(0).normal(size=9000).tolist()).encode()
    )
    batches = []
    for size in (0, 12, 20_000, len(packed) - 5):
        (tmp_path / "y.csv.gz").write_bytes(packed[:size])
        batches.clear()
        with pytest.raises(
            InvalidInputError, match=r"(cannot be read: compressed file ended|must be a non-empty file)"
        ):
            batches.extend(FileSource(tmp_path / "y.csv.gz", block_bytes=1 << 14).read())
    assert sum(map(len, batches)) > 5000  # points before the damage are read
    (tmp_path / "y.csv.gz").write_bytes(packed[:20_000])
    with pytest.raises(InvalidInputError, match="cannot be read: compressed file ended"):
        read(FileSource(tmp_path / "y.csv.gz"), batches[-1].position)
    (tmp_path / "z.csv.gz").write_bytes(content)
    with pytest.raises(InvalidInputError, match="not a gzipped file"):
        read(FileSource(tmp_path / "z.csv.gz"))
    with pytest.raises(InvalidInputError, match="source: must not be compressed"):
        FileSource(tmp_path / "x.csv.GZ", follow=True)


# Lines that are too long


@pytest.mark.parametrize("block_bytes", [1 << 12, 1 << 18, 1 << 24])
def test_long_lines_are_counted(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "x.csv"
    edge = b"3," + b" " * (MAX_RECORD_BYTES - 3) + b"5"
    assert len(edge) == MAX_RECORD_BYTES
    lines = [b"time,a", b"1,2", b"x" * 10_000_000, edge, b"4,6", edge + b" ", b"y" * (MAX_RECORD_BYTES + 1)]
    path.write_bytes(b"\n".join(lines))
    values, times, n, counts, first = read(FileSource(path, block_bytes=block_bytes))
    assert (values, times, n) == ([[2.0], [5.0], [6.0]], [1, 3, 4], 6)
    assert counts == {RECORD_TOO_LONG: 3}
    assert [index for index, _ in first] == [1, 4, 5]
    assert first[0][1] == "x" * 80 + "…"


def test_memory_is_bounded_however_long_a_line_is() -> None:
    pieces = iter([b"a\n", *[b"x" * (1 << 20)] * 3000, b"x\nb\n"])  # 3 GB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got = list(iter_line_blocks(lambda n: next(pieces, b""), 0))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes
    assert [block.data for block in got if block.data] == [b"a\n", b"b\n"]
    assert [len(block.oversized_prefix) for block in got if block.oversized_prefix is not None] == [400]
    assert got[-1].end == 2 + 3000 * (1 << 20) + 4


# Files that grow


def test_growing_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    batches = FileSource(path, follow=True).read()
    assert [len(next(batches)) for _ in range(2)] == [0, 0]  # an empty one is waited for
    with open(path, "ab", buffering=0) as file:
        file.write(b"# a logger\ntime,a\n")
        assert next(batches).position is None  # the header alone is not enough
        file.write(b"2024-05-01,1")
        assert len(next(batches)) == 0
        file.write(b".5\n")
        batches_read = read_until(batches, has_points(1))
        assert len(batches_read) <= 2  # a complete line is returned immediately
        file.write(b"2024-05-02,2.5\n2024-05-03,3")
        batches_read += read_until(batches, has_points(1))
        assert next(batches).lag == len(b"2024-05-03,3")
        position = batches_read[-1].position
        file.write(b"0\n2024-05-04,4\n")
    assert get_values([*batches_read, *read_until(batches, has_points(2))]) == [1.5, 2.5, 30, 4]
    assert get_values(read_until(FileSource(path, follow=True).read(position), has_points(2))) == [30, 4]
    assert read(FileSource(path))[0] == [[1.5], [2.5], [30], [4]]


def test_schema_is_inferred_from_one_json_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"time": 1714550400, "a": 1}\n')
    source = FileSource(path, follow=True)
    assert get_values(read_until(source.read(), has_points(1))) == [1]
    assert source.schema is not None
    assert (source.schema.time, source.schema.values) == ("time", ("a",))


def test_first_line_without_an_end_yields_empty_batches(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"1.5," * 50_000)
    batches = FileSource(path, follow=True).read()
    assert [len(next(batches)) for _ in range(4)] == [0, 0, 0, 0]
    with open(path, "ab") as file:
        file.write(b"1.5\n")
    assert collect(read_until(batches, lambda got: bool(got and got[-1].n_records)))[2] == 1


@pytest.mark.parametrize("names_again", [True, False])
def test_replaced_file_is_read(tmp_path: Path, names_again: bool) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,a,b\n1,10,0\n2,20,0\n")
    batches = FileSource(path, ColumnSpec(columns=("a",)), follow=True).read()
    got = read_until(batches, has_points(2))
    with open(path, "ab") as old_file:
        path.rename(tmp_path / "x.1")
        path.write_bytes(b"b,a,time\n0,40,4\n" if names_again else b"4,40,0\n")
        old_file.write(b"3,30,0")  # without a line end, which never follows
    got += read_until(batches, has_points(2))
    assert get_values(got) == [10, 20, 30, 40]
    assert [time for batch in got if batch.times is not None for time in batch.times.tolist()] == [1, 2, 3, 4]


def test_truncated_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,a\n1,10\n2,20\n3,3")
    batches = FileSource(path, follow=True).read()
    got = read_until(batches, has_points(2))
    os.truncate(path, 0)
    waiting = [next(batches), next(batches)]
    with open(path, "ab") as file:
        file.write(b"4,40\n")
    assert get_values([*got, *waiting, *read_until(batches, has_points(1))]) == [10, 20, 40]
    resumed = FileSource(path, follow=True)  # after a stop while the file was empty
    resumed.schema = waiting[-1].schema
    assert get_values(read_until(resumed.read(waiting[-1].position), has_points(1))) == [40]


def test_file_deleted_and_created_again_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n')
    batches = FileSource(path, follow=True).read()
    got = read_until(batches, has_points(1))
    path.unlink()
    got += [next(batches), next(batches)]
    path.write_text('{"b": 0, "a": 2}\n')
    assert get_values([*got, *read_until(batches, has_points(1))]) == [1, 2]


def test_file_replaced_before_a_resume_is_read_from_the_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,a\n1,10\n2,20\n")
    last = list(FileSource(path).read())[-1]
    assert resume(FileSource(path), last) == []
    for content in (b"time,a\n7,70\n8,80\n9,90\n", b"time,a\n1,10\n", b"7,70\n8,80\n"):
        path.write_bytes(content)
        with caplog.at_level(logging.WARNING, "limpet.streams"):
            values = collect(resume(FileSource(path), last))[0]
        assert values == [[float(line.split(b",")[1])] for line in content.splitlines() if b"time" not in line]
        assert "was replaced since the last checkpoint" in caplog.text
        caplog.clear()


# Unreadable files


def test_unreadable_files_raise(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be read: is a directory"):
        read(FileSource(tmp_path))
    with pytest.raises(InvalidInputError, match=r"nothing\.csv cannot be read: no such file"):
        read(FileSource(tmp_path / "nothing.csv"))
    for name in ("x.csv", "x.jsonl", "x.bin"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(InvalidInputError, match="source: must be a non-empty file"):
            read(FileSource(tmp_path / name))
    for data in (
        os.urandom(5000),
        b"\x7fELF" + bytes(500),
        b"SQLite format 3\0" + bytes(4000),
    ):
        (tmp_path / "x.bin").write_bytes(data)
        with pytest.raises(InvalidInputError, match="source: must be UTF-8 text"):
            read(FileSource(tmp_path / "x.bin"))
    (tmp_path / "x.csv").write_bytes(b"time,a\n1,2\n\x00\xff\xfe,3\n3,4\n")  # a broken record is not a broken file
    assert read(FileSource(tmp_path / "x.csv"))[0] == [[2.0], [4.0]]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_permission_denied_raises(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1\n")
    (tmp_path / "x.csv").chmod(0)
    with pytest.raises(InvalidInputError, match="permission denied"):
        read(FileSource(tmp_path / "x.csv"))


def test_malformed_json_before_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"x" * 200_000 + b'\n{"a": 1}\n[[[\n{"a": 2}\n')
    assert read(FileSource(path))[0] == [[1.0], [2.0]]
    assert read(FileSource(path))[3] == {NOT_JSON: 2}
    (tmp_path / "x.txt").write_text('{"a": 1}\n')  # inferred from the content
    assert read(FileSource(tmp_path / "x.txt"))[0] == [[1.0]]


# Pipes

PIPED_SCRIPT = """
import json, sys
from limpet.streams.sources.file import StdinSource
position = json.loads(sys.argv[1])
source = StdinSource()
for batch in source.read(position):
    for row in batch.values.tolist():
        print(json.dumps([row, batch.malformed.total]), flush=True)
    print("-" if not batch.n_records else "batch", flush=True)
print("end", json.dumps(source.schema.to_dict()), flush=True)
"""


class PipedProcess:
    """A process that reads standard input and prints the points."""

    def __init__(self, position: Any = None) -> None:
        command = [sys.executable, "-c", PIPED_SCRIPT, json.dumps(position)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.watchdog = threading.Timer(60.0, self.process.kill)  # so that the test cannot hang
        self.watchdog.start()

    def read_line(self) -> str:
        return self.stdout.readline().decode().strip()

    def read_point(self) -> list[Any]:
        """Return the next point; skip empty batches."""
        while not (line := self.read_line()).startswith("["):
            assert line in ("-", "batch")
        return list(json.loads(line)[0])

    def read_rest(self) -> tuple[list[list[float]], Schema]:
        self.stdin.close()
        lines = self.stdout.read().decode().splitlines()
        self.watchdog.cancel()
        assert self.process.wait() == 0
        rows = [json.loads(line)[0] for line in lines if line.startswith("[")]
        return rows, Schema.from_dict(json.loads(lines[-1].removeprefix("end ")))


def test_standard_input_is_read_line_by_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    csv, jsonl = PipedProcess(), PipedProcess()
    assert csv.read_line() == jsonl.read_line() == "-"  # empty batches, so that a run can stop
    csv.stdin.write(b"time,a\n")
    csv.stdin.write(b"1,1")
    jsonl.stdin.write(b'{"time": 1, "a": 5}\n')
    assert jsonl.read_point() == [5.0]
    csv.stdin.write(b".5\n")
    assert csv.read_point() == [1.5]
    csv.stdin.write(b"2,2.5\n3,3.")
    assert csv.read_point() == [2.5]
    jsonl.stdin.write(b'{"time": 2, "a": "x"}\n{"time": 3, "a": 7}\n')
    rows, _ = jsonl.read_rest()
    assert rows == [[7.0]]
    csv.stdin.write(b"75")
    rows, schema = csv.read_rest()
    assert rows == [[3.75]]
    for begin, value in (("time,a\\n4,4\\n", 4.0), ("5,5\\n", 5.0)):  # the names may come again, or not
        source = StdinSource(path=tmp_path / "pipe")
        source.schema = schema
        resumed = source.read({})
        assert len(next(resumed)) == 0
        subprocess.run(["/bin/sh", "-c", f"printf '{begin}' > {tmp_path}/pipe"], check=True)
        assert get_values(list(resumed)) == [value]


def test_fast_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    line, n = b"1.5,2.5,3.5\n", 2_000_000

    def write() -> None:
        with open(path, "wb") as pipe:
            pipe.write(b"a,b,c\n")
            for _ in range(100):
                pipe.write(line * (n // 100))

    writer = threading.Thread(target=write)
    writer.start()
    points, largest = 0, 0
    for batch in open_source(path).read(None):
        points, largest = points + len(batch), max(largest, len(batch))
    writer.join()
    assert (points, largest <= (1 << 16)) == (n, True)  # and it does not wait for the end to begin


def test_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    ending, live = open_source(path), open_source(path, follow=True)
    assert isinstance(ending, StdinSource)
    batches = live.read(None)
    assert len(next(batches)) == 0  # before the first writer
    for value in (1, 2):  # one writer after another
        subprocess.run(["/bin/sh", "-c", f"printf '%s\\n' {value} > {path}"], check=True)
        assert get_values(read_until(batches, has_points(1))) == [value]
    batches.close()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match="source: must be a file, got a pipe"):
        read(FileSource(path))
    batches = ending.read(None)
    assert len(next(batches)) == 0
    subprocess.run(["/bin/sh", "-c", f"printf 'a\\n3\\n4' > {path}"], check=True)
    assert get_values(list(batches)) == [3, 4]


def test_empty_pipes_raise(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="source: must not be empty, got /dev/null"):
        list(open_source("/dev/null").read(None))
    with pytest.raises(InvalidInputError, match="pipe cannot be read: no such file"):
        list(StdinSource(path=tmp_path / "pipe").read())


# Folders


def make_directory_source(path: Path, **options: Any) -> DirectorySource:
    return DirectorySource(path, lambda file, spec: open_file_source(file, spec, block_bytes=16), **options)


def write_file(path: Path, content: bytes, at: int) -> None:
    path.write_bytes(content)
    os.utime(path, (at, at))


def test_files_of_a_directory_are_read_in_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_file(tmp_path / "b.csv", b"time,a\n1,10\n2,20\n", 100)
    write_file(tmp_path / "a.jsonl", b'{"a": 50, "time": 5}\n{"a": 60, "time": 6}\n', 300)
    write_file(tmp_path / "c.csv", b"a;time\n30;3\n40;4\n", 200)
    write_file(tmp_path / "bad.csv", b"time,x\n1,10\n", 210)
    write_file(tmp_path / "worse.csv", bytes(100), 220)
    write_file(tmp_path / "dates.csv", b"time,a\n2024-05-01,7\n", 230)
    write_file(tmp_path / "names.csv", b"time,a\n", 240)
    pq.write_table(pa.table({"time": [7.0], "a": [70.0], "z": ["?"]}), tmp_path / "d.parquet")
    for name in (".hidden.csv", "e.csv.tmp", "e.csv.part", "e.swp"):
        write_file(tmp_path / name, b"time,a\n0,0\n", 1)
    (tmp_path / "in").mkdir()
    batches = list(make_directory_source(tmp_path, follow=False).read())
    values, times, n, counts, _ = collect(batches)
    assert [row[0] for row in values] == [10, 20, 30, 40, 50, 60, 70]
    assert times == [1, 2, 3, 4, 5, 6, 7]
    assert counts == {UNREADABLE_FILE: 3}
    assert n == 10
    assert "'a' not found" in caplog.text
    assert "time: must be given as number" in caplog.text
    for i, batch in enumerate(batches):
        again = collect([*batches[: i + 1], *resume(make_directory_source(tmp_path, follow=False), batch)])
        assert again[:4] == (values, times, n, counts)


def test_positions_of_other_sources_raise(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    others: list[Any] = [{"done": [], "current": None, "inner": None}, {"row": 3}, {"sequence": 1}, 17]
    for other in others:
        with pytest.raises(InvalidInputError, match="position: "):
            read(FileSource(tmp_path / "x.csv"), other)


def test_files_added_during_a_read_are_read(tmp_path: Path) -> None:
    batches = open_source(tmp_path).read(None)
    assert len(next(batches)) == 0
    (tmp_path / "1.csv.tmp").write_text("a\n1\n")
    assert len(next(batches)) == 0
    (tmp_path / "1.csv.tmp").rename(tmp_path / "1.csv")
    got = read_until(batches, has_points(1))
    (tmp_path / "2.csv").write_text("a\n2\n")
    (tmp_path / "3.csv").write_text("a\n3\n")
    (tmp_path / "1.csv").unlink()
    got += read_until(batches, has_points(2))
    assert get_values(got) == [1, 2, 3]
    again = open_source(tmp_path, follow=False)
    assert read(again, got[-1].position)[0] in ([], [[3.0]])


def test_directory_rereads_replaced_files_and_forgets_deleted_ones(tmp_path: Path) -> None:
    write_file(tmp_path / "a.csv", b"a\n1\n", 100)
    write_file(tmp_path / "b.csv", b"a\n2\n", 200)
    batches = list(make_directory_source(tmp_path, follow=False).read())
    position = json.loads(json.dumps(batches[-1].position))
    assert [name for name, *_ in position["done"]] == ["a.csv", "b.csv"]
    assert len({id(batch.position["done"]) for batch in batches if batch.position["current"] == "b.csv"}) == 1
    assert get_values(list(make_directory_source(tmp_path, follow=False).read(position))) == []
    write_file(tmp_path / "new", b"a\n3\n4\n", 300)
    (tmp_path / "new").replace(tmp_path / "a.csv")
    (tmp_path / "b.csv").unlink()
    got = list(make_directory_source(tmp_path, follow=False).read(position))
    assert get_values(got) == [3, 4]
    assert [name for name, *_ in got[-1].position["done"]] == ["a.csv"]
    for wrong in ({"offset": 7}, 7, [1]):
        with pytest.raises(InvalidInputError, match="position: "):
            next(make_directory_source(tmp_path).read(wrong))


def test_corrupted_file_is_read_once(tmp_path: Path) -> None:
    content = "a\n" + "".join(f"{value}\n" for value in np.random.default_rng(0).normal(size=20_000).tolist())
    (tmp_path / "1.csv.gz").write_bytes(gzip.compress(content.encode(), 1)[:-1000])
    broken = DirectorySource(
        tmp_path, lambda file, spec: open_file_source(file, spec, block_bytes=1 << 15), follow=False
    )
    batches = list(broken.read())
    values, _, n, counts, _ = collect(batches)
    assert counts == {UNREADABLE_FILE: 1}
    assert n == len(values) + 1
    assert len(values) > 1000
    numbers = [float(line) for line in content.splitlines()[1:]]
    for i, batch in enumerate(batches):
        got = get_values([*batches[: i + 1], *resume(broken, batch)])
        assert got == numbers[: len(got)]
        assert len(got) > 1000
