"""Job specifications and initial states, beside Spark's files of a checkpoint.

    <checkpoint>/limpet/generation-0001.json      specification of the job
    <checkpoint>/limpet/generation-0001-0001.json the same with other parameters, of a later query
    <checkpoint>/limpet/generation-0001-….states  states with which the generation starts, if any
    <checkpoint>/limpet/generation-0002.started   marks that a query has resumed with it

The highest generation is in force, and of it the latest specification. A repartitioning adds a generation; states of
earlier generations are ignored, and a bucket without a state starts with that of the file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, load
from limpet.fleet.partition import all_keys, split
from limpet.learners.serialization import read_header
from limpet.spark.filesystem import ReadableDirectory, RemoteDirectory
from limpet.spark.job_spec import JobSpec, check_param_changes, get_config
from limpet.spark.partition_state import PartitionState, check_variables, restore_partition
from limpet.spark.partitioner import partition_of_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


METADATA_DIR = "limpet"
SPEC_NAME_PATTERN = re.compile(r"generation-(\d+)(?:-(\d+))?\.json")
PartitionBytes = tuple[int, bytes, bytes]  # the bucket, its fleet, its clocks


def write_states(path: str | os.PathLike[str], parts: Iterable[PartitionBytes]) -> None:
    """Write the states of buckets to a ZIP archive."""
    with ZipFile(path, "w") as archive:
        for number, fleet, clocks in parts:
            archive.writestr(f"{number}/fleet", fleet)
            archive.writestr(f"{number}/clocks", clocks)


class StatesFile:
    """A file of `write_states`, which reads one bucket without the others."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def list_partitions(self) -> list[int]:
        """Return the buckets in the file."""
        with self._open() as archive:
            return sorted({int(name.partition("/")[0]) for name in archive.namelist()})

    def read_partition(self, number: int, spec: JobSpec) -> PartitionState | None:
        """Return the state of a bucket; None if the file has none."""
        with self._open() as archive:
            if f"{number}/fleet" not in archive.NameToInfo:
                return None
            return restore_partition(archive.read(f"{number}/fleet"), archive.read(f"{number}/clocks"), spec)

    def _open(self) -> ZipFile:
        try:
            return ZipFile(self.path)
        except BadZipFile as error:
            raise CheckpointError(f"{self.path}: must be an archive of states, got a damaged file ({error}).") from None


def open_checkpoint(spark: SparkSession, checkpoint: str, spec: JobSpec, initial: Any) -> JobSpec:
    """Resume or start a checkpoint, and return the job with the layout of its states.

    `initial` is a fleet or a file of one, whose streams executors can read from then on.
    """
    directory = RemoteDirectory(spark, checkpoint)
    previous = read_spec(directory)
    if previous is not None:
        _check_not_diverged(directory, previous)
        if initial is not None and previous.states_file is None and last_committed_batch(directory) < 0:
            raise CheckpointError(
                f"initial: must be given when a checkpoint is created, and {checkpoint} was created without it and has "
                "no committed batch. Remove it to start again."
            )
        spec = _resume_from(directory, spec, previous)
        if spec != previous:  # `export_fleet` reads it without a query
            generation, revision = max(_list_specs(directory))
            directory.write_text(f"{METADATA_DIR}/generation-{generation:04}-{revision + 1:04}.json", spec.to_json())
    elif last_committed_batch(directory) >= 0:
        raise CheckpointError(
            f"checkpoint: must have been created with checkpoint=…, got {checkpoint}, which cannot be checked. "
            "Continue without it, or start a new checkpoint."
        )
    else:
        spec = replace(spec, buckets=spec.n_buckets)
        parts = None if initial is None else _split_initial(initial, spec)
        spec = add_generation(directory, spec, parts)
    if spec.states_file is not None:
        spark.sparkContext.addFile(f"{directory.distribution_uri}/{METADATA_DIR}/{spec.states_file}")
    return spec


def _resume_from(directory: RemoteDirectory, spec: JobSpec, previous: JobSpec) -> JobSpec:
    try:
        return spec.resume_from(previous)
    except CheckpointError as error:
        if last_committed_batch(directory) >= 0:
            raise
        raise CheckpointError(
            f"{error} No batch has been committed: to start again, remove {directory.uri} and the output folder."
        ) from None


def read_spec(directory: ReadableDirectory) -> JobSpec | None:
    """Return the specification in force; None for a new checkpoint."""
    names = _list_specs(directory)
    return JobSpec.from_json(directory.read_text(f"{METADATA_DIR}/{names[max(names)]}")) if names else None


def last_committed_batch(directory: ReadableDirectory) -> int:
    """Return the last committed batch, −1 without one."""
    return last_batch(directory, "commits")


def last_batch(directory: ReadableDirectory, log: str) -> int:
    """Return the last batch in Spark's log "offsets" (started) or "commits", or −1."""
    return max((int(name) for name in directory.list_names(log) if name.isdigit()), default=-1)


def _check_not_diverged(directory: RemoteDirectory, spec: JobSpec) -> None:
    """Check that no batch was committed since the repartitioning."""
    name = f"generation-{spec.generation:04}"
    if spec.after_batch is None or f"{name}.started" in directory.list_names(METADATA_DIR):
        return
    if (committed := last_committed_batch(directory)) != spec.after_batch:
        raise CheckpointError(
            f"checkpoint: {directory.uri} was repartitioned to {spec.buckets} buckets after batch {spec.after_batch}, "
            f"but a query continued without these states to batch {committed}. Stop all queries, remove "
            f"{directory.uri}/{METADATA_DIR}/{name}.json, and repartition again."
        )
    directory.write_text(f"{METADATA_DIR}/{name}.started", "")


def _list_specs(directory: ReadableDirectory) -> dict[tuple[int, int], str]:
    """Return the names of the specifications by generation and revision."""
    matches = filter(None, map(SPEC_NAME_PATTERN.fullmatch, directory.list_names(METADATA_DIR)))
    return {(int(match[1]), int(match[2] or 0)): match[0] for match in matches}


def add_generation(directory: RemoteDirectory, spec: JobSpec, parts: Iterable[PartitionBytes] | None) -> JobSpec:
    """Write the states of a generation, then its specification, which activates it."""
    name = f"generation-{spec.generation:04}"
    if parts is not None:
        # A unique name: executors cache files by name.
        spec = replace(spec, states_file=f"{name}-{os.urandom(4).hex()}.states")
        with tempfile.TemporaryDirectory() as temp_dir:
            local = Path(temp_dir) / "states"
            write_states(local, parts)
            directory.upload(local, f"{METADATA_DIR}/{spec.states_file}")
    directory.write_text(f"{METADATA_DIR}/{name}.json", spec.to_json())
    return spec


def _split_initial(initial: Any, spec: JobSpec) -> list[PartitionBytes]:
    """Return the streams of an initial fleet by bucket."""
    fleet = initial if isinstance(initial, Fleet) else load(initial)
    if not isinstance(fleet, Fleet):
        raise InvalidInputError(f"initial: must be a fleet, got {fleet!r}.")
    check_param_changes(get_config(fleet.learner), spec.learner)
    keys = all_keys(fleet)
    if not keys:
        return []
    if isinstance(keys[0], str) != spec.has_string_keys:
        kind = "strings" if spec.has_string_keys else "integers"
        raise InvalidInputError(f"initial: its keys must be {kind}, as in column {spec.key!r}, got {keys[0]!r}.")
    parts = [(n, part.to_bytes(), b"") for n, part in split(fleet, partition_of_list(keys, spec.n_buckets)).items()]
    check_variables(read_header(parts[0][1])[0], spec)
    return parts
