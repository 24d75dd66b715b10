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

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, from_bytes
from limpet.fleet.partition import concat, split
from limpet.spark.checkpoint import (
    METADATA_DIR,
    PartitionBytes,
    StatesFile,
    add_generation,
    last_batch,
    last_committed_batch,
    read_spec,
)
from limpet.spark.filesystem import RemoteDirectory
from limpet.spark.job_spec import JobSpec, check_buckets
from limpet.spark.partition_state import PartitionState, from_state_value
from limpet.spark.partitioner import partition_of_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STATEFUL_OPERATOR = "applyInPandasWithState"


def export_fleet(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> Fleet:
    """All streams of a checkpoint as one fleet, as they were after the last batch that was committed."""
    directory, spec = _open_checkpoint(spark, checkpoint)
    fleets = [bucket.fleet for _, bucket in _read_partitions(spark, directory, spec)]
    return concat(fleets) if fleets else Fleet(spec.make_learner())


def repartition(spark: SparkSession, checkpoint: str | os.PathLike[str], buckets: int) -> None:
    """Moves a checkpoint to another number of buckets; the query must not be running.

    The next query on it goes on where the last one was, with as many buckets: same rows, same batches, same answers.
    Until then nothing of Spark's is touched. One bucket at a time is in memory.
    """
    check_buckets(buckets)
    directory, spec = _open_checkpoint(spark, checkpoint)
    _check_not_running(spark, directory)
    _check_no_pending_batch(directory)
    last_batch_id = last_committed_batch(directory)
    new_spec = replace(spec, buckets=buckets, generation=spec.generation + 1, states=None, after=last_batch_id)
    with tempfile.TemporaryDirectory() as temp_dir:
        pieces = Path(temp_dir) / "pieces"
        with ZipFile(pieces, "w") as archive:
            for source, bucket in _read_partitions(spark, directory, spec):
                _write_pieces(archive, source, bucket, buckets)
        if last_committed_batch(directory) != last_batch_id:
            raise CheckpointError(f"a query is running on {checkpoint}: stop it first; nothing was changed")
        add_generation(directory, new_spec, _merge_pieces(pieces))


def _open_checkpoint(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> tuple[RemoteDirectory, JobSpec]:
    directory = RemoteDirectory(spark, os.fspath(checkpoint))
    spec = read_spec(directory)
    if spec is None:
        raise InvalidInputError(
            f"{directory.uri} is no checkpoint of score(…, checkpoint=…): nothing of limpet is in it"
        )
    return directory, spec


def _read_partitions(
    spark: SparkSession, directory: RemoteDirectory, spec: JobSpec
) -> Iterator[tuple[int, PartitionState]]:
    """Every bucket that has a state, one after another: as Spark has it, or as its generation began."""
    seen = set()
    if last_committed_batch(directory) >= 0:
        if not directory.has_plain_path:
            raise CheckpointError(
                f"Spark cannot read states in a folder with spaces or other such characters in its address: rename "
                f"{directory.uri} while no query runs on it"
            )
        reader = spark.read.format("statestore").option("operatorId", _find_operator_id(spark, directory))
        states = reader.load(directory.uri).select("key.bucket", "value.groupState.*")
        for number, *value in states.toLocalIterator():
            if number < spec.n_buckets and (bucket := from_state_value(value, spec)) is not None:
                seen.add(number)
                yield number, bucket
    if spec.states is not None:
        with tempfile.TemporaryDirectory() as temp_dir:
            local = Path(temp_dir) / "states"
            directory.download(f"{METADATA_DIR}/{spec.states}", local)
            file = StatesFile(local)
            for number in file.list_partitions():
                if number not in seen and (bucket := file.read_partition(number, spec)) is not None:
                    yield number, bucket


def _write_pieces(archive: ZipFile, source: int, bucket: PartitionState, n_buckets: int) -> None:
    """The streams of a bucket, to the buckets that they belong to now: a piece for each."""
    if not len(bucket.fleet):
        return
    bucket_index, times = partition_of_list(bucket.fleet.keys(), n_buckets), bucket.last_times()
    for number, part in split(bucket.fleet, bucket_index).items():
        archive.writestr(f"{number}/{source}/fleet", part.to_bytes())
        archive.writestr(f"{number}/{source}/times", times[bucket_index == number].astype("<i8").tobytes())


def _merge_pieces(pieces: Path) -> Iterator[PartitionBytes]:
    """The pieces of each bucket as one."""
    with ZipFile(pieces) as archive:
        pieces_by_bucket: dict[int, list[str]] = {}
        for name in archive.namelist():
            prefix, _, kind = name.rpartition("/")
            if kind == "fleet":
                pieces_by_bucket.setdefault(int(prefix.partition("/")[0]), []).append(prefix)
        for number, prefixes in sorted(pieces_by_bucket.items()):
            fleets = [from_bytes(archive.read(f"{prefix}/fleet")) for prefix in prefixes]
            merged = concat([fleet for fleet in fleets if isinstance(fleet, Fleet)])
            yield number, merged.to_bytes(), b"".join(archive.read(f"{prefix}/times") for prefix in prefixes)


def _find_operator_id(spark: SparkSession, directory: RemoteDirectory) -> int:
    """Which of the query's operators with a state is the one that learns."""
    operators = spark.read.format("state-metadata").load(directory.uri).select("operatorId", "operatorName").collect()
    operator_ids = sorted({number for number, name in operators if name == STATEFUL_OPERATOR})
    if len(operator_ids) != 1:
        names = ", ".join(name for _, name in sorted(set(operators))) or "none"
        raise CheckpointError(
            f"expected a query that learns once: one operator {STATEFUL_OPERATOR} in {directory.uri}, got {names}"
        )
    return int(operator_ids[0])


def _check_no_pending_batch(directory: RemoteDirectory) -> None:
    """A batch that all tasks have learnt and nobody has committed: the sink may have it. It is passed over then at the
    next start, and what was learnt from it is only in states that would be no more."""
    batch = last_batch(directory, "offsets")
    if batch <= last_committed_batch(directory):
        return
    operators = [f"state/{entry}" for entry in directory.list_names("state") if entry.isdigit()]
    partitions = [
        f"{operator}/{entry}" for operator in operators for entry in directory.list_names(operator) if entry.isdigit()
    ]
    is_processed = [
        any(_parse_state_version(name) == batch + 1 for name in directory.list_names(entry)) for entry in partitions
    ]
    if is_processed and all(is_processed):
        raise CheckpointError(
            f"batch {batch} has been learnt but not committed in {directory.uri}: start the query once more, let it "
            "commit a batch (with trigger(availableNow=True) it ends by itself), then rebucket; nothing was changed"
        )


def _parse_state_version(name: str) -> int:
    """Of the states in a file of Spark's; −1 for another file."""
    match = re.match(r"(\d+)[._]", name)
    return int(match[1]) if match else -1


def _check_not_running(spark: SparkSession, directory: RemoteDirectory) -> None:
    """A query of this session on the same checkpoint; one of another session is noticed when it commits a batch."""
    for query in spark.streams.active:
        root = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
        if RemoteDirectory(spark, root).canonical_uri == directory.canonical_uri:
            raise CheckpointError(f"a query is running on {directory.uri}: stop it first; nothing was changed")
