"""What a checkpoint was begun with: a description for each generation, beside what Spark keeps.

    <checkpoint>/limpet/generation-0001.json      what the job does, and in how many buckets
    <checkpoint>/limpet/generation-0001-0001.json the same with other settings, which a later query had
    <checkpoint>/limpet/generation-0001-….states  the states it begins with, if any
    <checkpoint>/limpet/generation-0002.begun     that a query has gone on with it

The generation with the highest number counts, and of it what was told last. A rebucketing adds one; the states of Spark
that are of an earlier one are passed over, and a bucket that has none yet begins with those of the file.
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
from limpet.spark.filesystem import ReadableDirectory, RemoteDirectory
from limpet.spark.job_spec import JobSpec, check_param_changes
from limpet.spark.partition_state import PartitionState, restore_partition
from limpet.spark.partitioner import partition_of_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession


# The states that a generation begins with: a ZIP archive, of which one bucket is read without the others.

PartitionBytes = tuple[int, bytes, bytes]  # the bucket, the bytes of its fleet, the times of its streams


def write_states(path: str | os.PathLike[str], parts: Iterable[PartitionBytes]) -> None:
    """Writes such a file."""
    with ZipFile(path, "w") as archive:
        for number, fleet, times in parts:
            archive.writestr(f"{number}/fleet", fleet)
            archive.writestr(f"{number}/times", times)


class StatesFile:
    """Such a file, to be read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def list_partitions(self) -> list[int]:
        """The buckets that are in it."""
        with self._open() as archive:
            return sorted({int(name.partition("/")[0]) for name in archive.namelist()})

    def read_partition(self, number: int, spec: JobSpec) -> PartitionState | None:
        """A bucket as it began; None if it is not in it."""
        with self._open() as archive:
            if f"{number}/fleet" not in archive.NameToInfo:
                return None
            return restore_partition(archive.read(f"{number}/fleet"), archive.read(f"{number}/times"), spec)

    def _open(self) -> ZipFile:
        try:
            return ZipFile(self.path)
        except BadZipFile as error:
            raise CheckpointError(f"{self.path} holds no states: {error}") from None


METADATA_DIR = "limpet"
SPEC_NAME_PATTERN = re.compile(r"generation-(\d+)(?:-(\d+))?\.json")


def open_checkpoint(spark: SparkSession, checkpoint: str, spec: JobSpec, initial: Any) -> JobSpec:
    """The plan on a checkpoint: as it was begun, or begun now. States to begin with are where tasks can read them."""
    directory = RemoteDirectory(spark, checkpoint)
    previous = read_spec(directory)
    if previous is not None:
        _check_not_diverged(directory, previous)
        if initial is not None and previous.states is None and last_committed_batch(directory) < 0:
            raise CheckpointError(
                f"{checkpoint} was begun without initial=…, and no batch has been committed: remove it to begin anew"
            )
        spec = _resume_from(directory, spec, previous)
        if spec != previous:  # for who reads the states without the query
            _write_revision(directory, spec)
    elif last_committed_batch(directory) >= 0:
        raise CheckpointError(
            f"{checkpoint} was begun without checkpoint=… and cannot be looked at: go on without, or begin a new one"
        )
    else:
        spec = replace(spec, buckets=spec.n_buckets)
        parts = None if initial is None else _split_initial(initial, spec)
        spec = add_generation(directory, spec, parts)
    if spec.states is not None:
        spark.sparkContext.addFile(f"{directory.distribution_uri}/{METADATA_DIR}/{spec.states}")
    return spec


def _resume_from(directory: RemoteDirectory, spec: JobSpec, previous: JobSpec) -> JobSpec:
    try:
        return spec.resume_from(previous)
    except CheckpointError as error:
        if last_committed_batch(directory) >= 0:
            raise
        raise CheckpointError(
            f"{error} (no batch has been committed there: to begin anew, remove {directory.uri} and its results)"
        ) from None


def read_spec(directory: ReadableDirectory) -> JobSpec | None:
    """The plan of the generation that counts; None for a checkpoint that has not been begun."""
    names = _list_specs(directory)
    return JobSpec.from_json(directory.read_text(f"{METADATA_DIR}/{names[max(names)]}")) if names else None


def last_committed_batch(directory: ReadableDirectory) -> int:
    """The last batch that was committed; −1 if none was."""
    return last_batch(directory, "commits")


def last_batch(directory: ReadableDirectory, log: str) -> int:
    """The last batch in one of Spark's logs: "offsets", those that were begun, or "commits"; −1 if there is none."""
    return max((int(name) for name in directory.list_names(log) if name.isdigit()), default=-1)


def _check_not_diverged(directory: RemoteDirectory, spec: JobSpec) -> None:
    """A generation begins where the one before it was when its states were written: nobody may have gone on since."""
    started_marker = f"generation-{spec.generation:04}.begun"
    if spec.after is None or started_marker in directory.list_names(METADATA_DIR):
        return
    if last_committed_batch(directory) != spec.after:
        name = directory.child_uri(f"{METADATA_DIR}/generation-{spec.generation:04}.json")
        raise CheckpointError(
            f"{directory.uri} was moved to {spec.buckets} buckets after batch {spec.after}, but a query went on "
            f"without them to batch {last_committed_batch(directory)}: what it learnt is not in them. Stop all queries, remove "
            f"{name}, and rebucket again"
        )
    directory.write_text(f"{METADATA_DIR}/{started_marker}", "")


def _list_specs(directory: ReadableDirectory) -> dict[tuple[int, int], str]:
    """The descriptions that are there, by generation and number."""
    matches = filter(None, map(SPEC_NAME_PATTERN.fullmatch, directory.list_names(METADATA_DIR)))
    return {(int(match[1]), int(match[2] or 0)): match[0] for match in matches}


def _write_revision(directory: RemoteDirectory, spec: JobSpec) -> None:
    """The same generation goes on with other settings."""
    generation, number = max(_list_specs(directory))
    directory.write_text(f"{METADATA_DIR}/generation-{generation:04}-{number + 1:04}.json", spec.to_json())


def add_generation(directory: RemoteDirectory, spec: JobSpec, parts: Iterable[PartitionBytes] | None) -> JobSpec:
    """A further generation: the states first, then the description, with which it counts."""
    name = f"generation-{spec.generation:04}"
    if parts is not None:
        # Of a name that is found nowhere else: executors keep files by their name.
        spec = replace(spec, states=f"{name}-{os.urandom(4).hex()}.states")
        with tempfile.TemporaryDirectory() as temp_dir:
            local = Path(temp_dir) / "states"
            write_states(local, parts)
            directory.upload(local, f"{METADATA_DIR}/{spec.states}")
    directory.write_text(f"{METADATA_DIR}/{name}.json", spec.to_json())
    return spec


def _split_initial(initial: Any, spec: JobSpec) -> list[PartitionBytes]:
    """The streams of a fleet by bucket."""
    fleet = initial if isinstance(initial, Fleet) else load(initial)
    if not isinstance(fleet, Fleet):
        raise InvalidInputError(f"initial: expected a fleet, got {fleet!r}")
    check_param_changes(fleet.learner._config(None, None), spec.model)
    keys = all_keys(fleet)
    if not keys:
        return []
    if isinstance(keys[0], str) != spec.texts:
        raise InvalidInputError(f"initial: its keys are such as {keys[0]!r}, those of the column {spec.key!r} are not")
    if fleet.feature_names != spec.values and (fleet.feature_names or fleet._executor.width != len(spec.values)):
        fleet_variables = ", ".join(fleet.feature_names or ()) or f"{fleet._executor.width} variables"
        raise InvalidInputError(
            f"initial: its streams are of {fleet_variables}, the values are {', '.join(spec.values)}"
        )
    parts = split(fleet, partition_of_list(keys, spec.n_buckets)).items()
    return [(number, part.to_bytes(), b"") for number, part in parts]
