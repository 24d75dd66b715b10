"""Change the number of buckets of a checkpoint, or export its streams."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import numpy as np

from limpet._format import join_names
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet
from limpet.fleet.fleet import fleet_from_bytes
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
from limpet.spark.partition_state import PartitionState, concat_clocks, from_state_value
from limpet.spark.partitioner import partition_of_list
from limpet.streams.event_time import ClockTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STATEFUL_OPERATOR = "applyInPandasWithState"


def export_fleet(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> Fleet:
    """Return the streams of a checkpoint, as of the last committed batch.

    Parameters
    ----------
    spark : SparkSession
        A session whose driver runs in this process.
    checkpoint : str or path
        Folder of the checkpoint.

    Returns
    -------
    Fleet

    Raises
    ------
    InvalidInputError
        If the folder is not a checkpoint of `score`.
    """
    directory, spec = _open_checkpoint(spark, checkpoint)
    fleets = [state.fleet for _, state in _read_partitions(spark, directory, spec)]
    return concat(fleets) if fleets else Fleet(spec.make_learner())


def repartition(spark: SparkSession, checkpoint: str | os.PathLike[str], buckets: int) -> None:
    """Change the number of buckets of a checkpoint.

    Stop the query first. The next query on the checkpoint resumes with the new number of buckets, the same batches and
    the same results. Spark's files are not changed. One bucket at a time is in memory.

    Parameters
    ----------
    spark : SparkSession
        A session whose driver runs in this process.
    checkpoint : str or path
        Folder of the checkpoint.
    buckets : int
        The new number of buckets.

    Raises
    ------
    CheckpointError
        If a query is running on the checkpoint, or its last batch is not committed.
    """
    check_buckets(buckets)
    directory, spec = _open_checkpoint(spark, checkpoint)
    _check_not_running(spark, directory)
    _check_no_pending_batch(directory)
    last = last_committed_batch(directory)
    new_spec = replace(spec, buckets=buckets, generation=spec.generation + 1, states_file=None, after_batch=last)
    with tempfile.TemporaryDirectory() as temp_dir:
        pieces = Path(temp_dir) / "pieces"
        with ZipFile(pieces, "w") as archive:
            for source, state in _read_partitions(spark, directory, spec):
                _write_pieces(archive, source, state, buckets)
        if last_committed_batch(directory) != last:
            raise _running_query_error(directory)
        add_generation(directory, new_spec, _merge_pieces(pieces))


def _open_checkpoint(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> tuple[RemoteDirectory, JobSpec]:
    directory = RemoteDirectory(spark, os.fspath(checkpoint))
    spec = read_spec(directory)
    if spec is None:
        raise InvalidInputError(f"checkpoint: must be a folder of score(…, checkpoint=…), got {directory.uri}.")
    return directory, spec


def _read_partitions(
    spark: SparkSession, directory: RemoteDirectory, spec: JobSpec
) -> Iterator[tuple[int, PartitionState]]:
    """Yield the states of all buckets, from Spark or the file of the generation."""
    seen = set()
    if last_committed_batch(directory) >= 0:
        if not directory.has_plain_path:
            raise CheckpointError(
                "checkpoint: must be a path without spaces and special characters, from which Spark can read states, "
                f"got {directory.uri}. Stop the query and rename the folder."
            )
        reader = spark.read.format("statestore").option("operatorId", _find_operator_id(spark, directory))
        states = reader.load(directory.uri).select("key.bucket", "value.groupState.*")
        for number, *value in states.toLocalIterator():
            if number < spec.n_buckets and (state := from_state_value(value, spec)) is not None:
                seen.add(number)
                yield number, state
    if spec.states_file is not None:
        with tempfile.TemporaryDirectory() as temp_dir:
            local = Path(temp_dir) / "states"
            directory.download(f"{METADATA_DIR}/{spec.states_file}", local)
            file = StatesFile(local)
            for number in file.list_partitions():
                if number not in seen and (state := file.read_partition(number, spec)) is not None:
                    yield number, state


def _write_pieces(archive: ZipFile, source: int, state: PartitionState, n_buckets: int) -> None:
    """Write the streams of a bucket, by their new bucket."""
    if not len(state.fleet):
        return
    bucket_index, clocks = partition_of_list(state.fleet.keys(), n_buckets), state.ordered_clocks()
    for number, part in split(state.fleet, bucket_index).items():
        archive.writestr(f"{number}/{source}/fleet", part.to_bytes())
        archive.writestr(f"{number}/{source}/clocks", clocks.take(np.flatnonzero(bucket_index == number)).to_bytes())


def _merge_pieces(pieces: Path) -> Iterator[PartitionBytes]:
    """Yield the new buckets, merged of the pieces of the old ones."""
    with ZipFile(pieces) as archive:
        pieces_by_bucket: dict[int, list[str]] = {}
        for name in archive.namelist():
            bucket, source, kind = name.split("/")
            if kind == "fleet":
                pieces_by_bucket.setdefault(int(bucket), []).append(f"{bucket}/{source}")
        for number, prefixes in sorted(pieces_by_bucket.items()):
            fleet = concat([fleet_from_bytes(archive.read(f"{prefix}/fleet")) for prefix in prefixes])
            clocks = concat_clocks([ClockTable.from_bytes(archive.read(f"{prefix}/clocks")) for prefix in prefixes])
            yield number, fleet.to_bytes(), clocks.to_bytes()


def _find_operator_id(spark: SparkSession, directory: RemoteDirectory) -> int:
    """Return the stateful operator of the query that is `score`."""
    operators = spark.read.format("state-metadata").load(directory.uri).select("operatorId", "operatorName").collect()
    operator_ids = sorted({number for number, name in operators if name == STATEFUL_OPERATOR})
    if len(operator_ids) != 1:
        names = join_names(name for _, name in sorted(set(operators)))
        raise CheckpointError(
            f"checkpoint: its query must have one operator {STATEFUL_OPERATOR}, got {names} in {directory.uri}."
        )
    return int(operator_ids[0])


def _check_no_pending_batch(directory: RemoteDirectory) -> None:
    """Check that the last batch is committed.

    If all tasks of a batch have ended, the sink may have its rows although it is not committed. The next start would
    skip it there, and the states that have learned it would be ignored after a repartitioning.
    """
    batch = last_batch(directory, "offsets")
    if batch <= last_committed_batch(directory):
        return
    operators = [f"state/{name}" for name in directory.list_names("state") if name.isdigit()]
    partitions = [f"{path}/{name}" for path in operators for name in directory.list_names(path) if name.isdigit()]
    state_name = re.compile(rf"{batch + 1}[._]")  # the states after a batch are of the next version
    is_processed = [any(map(state_name.match, directory.list_names(path))) for path in partitions]
    if is_processed and all(is_processed):
        raise CheckpointError(
            f"checkpoint: its last batch must be committed, got batch {batch} processed but not committed in "
            f"{directory.uri}. Start the query, let it commit a batch (with trigger(availableNow=True) it ends then), "
            "and repartition again."
        )


def _check_not_running(spark: SparkSession, directory: RemoteDirectory) -> None:
    """Check this session's queries; others are detected when they commit a batch."""
    for query in spark.streams.active:
        root = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
        if RemoteDirectory(spark, root).canonical_uri == directory.canonical_uri:
            raise _running_query_error(directory)


def _running_query_error(directory: RemoteDirectory) -> CheckpointError:
    return CheckpointError(f"checkpoint: must not be in use, got a running query on {directory.uri}. Stop it.")
