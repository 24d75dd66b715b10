"""Moving states: to another number of buckets, and down to one machine."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from holdfast.engines.spark.bucket import Bucket
from holdfast.engines.spark.folder import Folder
from holdfast.engines.spark.generations import OWN, add, last_batch, last_commit, latest
from holdfast.engines.spark.hashing import buckets_of_list
from holdfast.engines.spark.plan import Plan, check_buckets
from holdfast.engines.spark.state import bucket_of
from holdfast.engines.spark.states_file import Part, StatesFile
from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet import Fleet, from_bytes
from holdfast.fleet.parts import joined, split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATOR = "applyInPandasWithState"


def export(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> Fleet:
    """All streams of a checkpoint as one fleet, as they were after the last batch that was committed."""
    folder, plan = _opened(spark, checkpoint)
    fleets = [bucket.fleet for _, bucket in _buckets(spark, folder, plan)]
    return joined(fleets) if fleets else Fleet(plan.learner())


def rebucket(spark: SparkSession, checkpoint: str | os.PathLike[str], buckets: int) -> None:
    """Moves a checkpoint to another number of buckets; the query must not be running.

    The next query on it goes on where the last one was, with as many buckets: same rows, same batches, same answers.
    Until then nothing of Spark's is touched. One bucket at a time is in memory.
    """
    check_buckets(buckets)
    folder, plan = _opened(spark, checkpoint)
    _refuse_running(spark, folder)
    _refuse_unfinished(folder)
    before = last_commit(folder)
    fresh = replace(plan, buckets=buckets, generation=plan.generation + 1, states=None, after=before)
    with tempfile.TemporaryDirectory() as room:
        pieces = Path(room) / "pieces"
        with ZipFile(pieces, "w") as archive:
            for old, bucket in _buckets(spark, folder, plan):
                _deal_out(archive, old, bucket, buckets)
        if last_commit(folder) != before:
            raise CheckpointError(f"a query is running on {checkpoint}: stop it first; nothing was changed")
        add(folder, fresh, _gathered(pieces))


def _opened(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> tuple[Folder, Plan]:
    folder = Folder(spark, os.fspath(checkpoint))
    plan = latest(folder)
    if plan is None:
        raise BadInputError(
            f"{folder.address} is no checkpoint of score(…, checkpoint=…): nothing of holdfast is in it"
        )
    return folder, plan


def _buckets(spark: SparkSession, folder: Folder, plan: Plan) -> Iterator[tuple[int, Bucket]]:
    """Every bucket that has a state, one after another: as Spark has it, or as its generation began."""
    known = set()
    if last_commit(folder) >= 0:
        if not folder.is_plain:
            raise CheckpointError(
                f"Spark cannot read states in a folder with spaces or other such characters in its address: rename "
                f"{folder.address} while no query runs on it"
            )
        reader = spark.read.format("statestore").option("operatorId", _operator(spark, folder))
        states = reader.load(folder.address).select("key.bucket", "value.groupState.*")
        for number, *value in states.toLocalIterator():
            if number < plan.n_buckets and (bucket := bucket_of(value, plan)) is not None:
                known.add(number)
                yield number, bucket
    if plan.states is not None:
        with tempfile.TemporaryDirectory() as room:
            local = Path(room) / "states"
            folder.give_out(f"{OWN}/{plan.states}", local)
            file = StatesFile(local)
            for number in file.numbers():
                if number not in known and (bucket := file.bucket(number, plan)) is not None:
                    yield number, bucket


def _deal_out(archive: ZipFile, old: int, bucket: Bucket, n_buckets: int) -> None:
    """The streams of a bucket, to the buckets that they belong to now: a piece for each."""
    if not len(bucket.fleet):
        return
    owners, times = buckets_of_list(bucket.fleet.keys(), n_buckets), bucket.last_times()
    for number, part in split(bucket.fleet, owners).items():
        archive.writestr(f"{number}/{old}/fleet", part.to_bytes())
        archive.writestr(f"{number}/{old}/times", times[owners == number].astype("<i8").tobytes())


def _gathered(pieces: Path) -> Iterator[Part]:
    """The pieces of each bucket as one."""
    with ZipFile(pieces) as archive:
        of: dict[int, list[str]] = {}
        for name in archive.namelist():
            place, _, what = name.rpartition("/")
            if what == "fleet":
                of.setdefault(int(place.partition("/")[0]), []).append(place)
        for number, own in sorted(of.items()):
            fleets = [from_bytes(archive.read(f"{one}/fleet")) for one in own]
            whole = joined([fleet for fleet in fleets if isinstance(fleet, Fleet)])
            yield number, whole.to_bytes(), b"".join(archive.read(f"{one}/times") for one in own)


def _operator(spark: SparkSession, folder: Folder) -> int:
    """Which of the query's operators with a state is the one that learns."""
    operators = spark.read.format("state-metadata").load(folder.address).select("operatorId", "operatorName").collect()
    ours = sorted({number for number, name in operators if name == OPERATOR})
    if len(ours) != 1:
        told = ", ".join(name for _, name in sorted(set(operators))) or "none"
        raise CheckpointError(
            f"expected a query that learns once: one operator {OPERATOR} in {folder.address}, got {told}"
        )
    return int(ours[0])


def _refuse_unfinished(folder: Folder) -> None:
    """A batch that all tasks have learnt and nobody has committed: the sink may have it. It is passed over then at the
    next start, and what was learnt from it is only in states that would be no more."""
    batch = last_batch(folder, "offsets")
    if batch <= last_commit(folder):
        return
    operators = [f"state/{one}" for one in folder.names("state") if one.isdigit()]
    partitions = [f"{operator}/{one}" for operator in operators for one in folder.names(operator) if one.isdigit()]
    learnt = [any(_version(name) == batch + 1 for name in folder.names(one)) for one in partitions]
    if learnt and all(learnt):
        raise CheckpointError(
            f"batch {batch} has been learnt but not committed in {folder.address}: start the query once more, let it "
            "commit a batch (with trigger(availableNow=True) it ends by itself), then rebucket; nothing was changed"
        )


def _version(name: str) -> int:
    """Of the states in a file of Spark's; −1 for another file."""
    found = re.match(r"(\d+)[._]", name)
    return int(found[1]) if found else -1


def _refuse_running(spark: SparkSession, folder: Folder) -> None:
    """A query of this session on the same checkpoint; one of another session is noticed when it commits a batch."""
    for query in spark.streams.active:
        root = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
        if Folder(spark, root).real == folder.real:
            raise CheckpointError(f"a query is running on {folder.address}: stop it first; nothing was changed")
