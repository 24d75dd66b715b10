"""What a checkpoint was begun with: a description for each generation, beside what Spark keeps.

    <checkpoint>/holdfast/generation-0001.json      what the job does, and in how many buckets
    <checkpoint>/holdfast/generation-0001-0001.json the same with other settings, which a later query had
    <checkpoint>/holdfast/generation-0001-….states  the states it begins with, if any
    <checkpoint>/holdfast/generation-0002.begun     that a query has gone on with it

The generation with the highest number counts, and of it what was told last. A rebucketing adds one; the states of Spark
that are of an earlier one are passed over, and a bucket that has none yet begins with those of the file.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.engines.spark.folder import Folder, Readable
from holdfast.engines.spark.hashing import buckets_of_list
from holdfast.engines.spark.plan import Plan, check_retuning
from holdfast.engines.spark.states_file import Part, write_states
from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet import Fleet, load
from holdfast.fleet.parts import keys_of, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

OWN = "holdfast"
NAME = re.compile(r"generation-(\d+)(?:-(\d+))?\.json")


def begun(spark: SparkSession, checkpoint: str, plan: Plan, initial: Any) -> Plan:
    """The plan on a checkpoint: as it was begun, or begun now. States to begin with are where tasks can read them."""
    folder = Folder(spark, checkpoint)
    before = latest(folder)
    if before is not None:
        _refuse_gone_on(folder, before)
        if initial is not None and before.states is None and last_commit(folder) < 0:
            raise CheckpointError(
                f"{checkpoint} was begun without initial=…, and no batch has been committed: remove it to begin anew"
            )
        plan = _going_on(folder, plan, before)
        if plan != before:  # for who reads the states without the query
            _retell(folder, plan)
    elif last_commit(folder) >= 0:
        raise CheckpointError(
            f"{checkpoint} was begun without checkpoint=… and cannot be looked at: go on without, or begin a new one"
        )
    else:
        plan = replace(plan, buckets=plan.n_buckets)
        parts = None if initial is None else _parts_of(initial, plan)
        plan = add(folder, plan, parts)
    if plan.states is not None:
        spark.sparkContext.addFile(f"{folder.given_out}/{OWN}/{plan.states}")
    return plan


def _going_on(folder: Folder, plan: Plan, before: Plan) -> Plan:
    try:
        return plan.going_on_from(before)
    except CheckpointError as error:
        if last_commit(folder) >= 0:
            raise
        raise CheckpointError(
            f"{error} (no batch has been committed there: to begin anew, remove {folder.address} and its results)"
        ) from None


def latest(folder: Readable) -> Plan | None:
    """The plan of the generation that counts; None for a checkpoint that has not been begun."""
    told = _told(folder)
    return Plan.of_json(folder.read(f"{OWN}/{told[max(told)]}")) if told else None


def last_commit(folder: Readable) -> int:
    """The last batch that was committed; −1 if none was."""
    return last_batch(folder, "commits")


def last_batch(folder: Readable, log: str) -> int:
    """The last batch in one of Spark's logs: "offsets", those that were begun, or "commits"; −1 if there is none."""
    return max((int(name) for name in folder.names(log) if name.isdigit()), default=-1)


def _refuse_gone_on(folder: Folder, plan: Plan) -> None:
    """A generation begins where the one before it was when its states were written: nobody may have gone on since."""
    begun_already = f"generation-{plan.generation:04}.begun"
    if plan.after is None or begun_already in folder.names(OWN):
        return
    if last_commit(folder) != plan.after:
        name = folder.at(f"{OWN}/generation-{plan.generation:04}.json")
        raise CheckpointError(
            f"{folder.address} was moved to {plan.buckets} buckets after batch {plan.after}, but a query went on "
            f"without them to batch {last_commit(folder)}: what it learnt is not in them. Stop all queries, remove "
            f"{name}, and rebucket again"
        )
    folder.write(f"{OWN}/{begun_already}", "")


def _told(folder: Readable) -> dict[tuple[int, int], str]:
    """The descriptions that are there, by generation and number."""
    found = filter(None, map(NAME.fullmatch, folder.names(OWN)))
    return {(int(name[1]), int(name[2] or 0)): name[0] for name in found}


def _retell(folder: Folder, plan: Plan) -> None:
    """The same generation goes on with other settings."""
    generation, number = max(_told(folder))
    folder.write(f"{OWN}/generation-{generation:04}-{number + 1:04}.json", plan.to_json())


def add(folder: Folder, plan: Plan, parts: Iterable[Part] | None) -> Plan:
    """A further generation: the states first, then the description, with which it counts."""
    name = f"generation-{plan.generation:04}"
    if parts is not None:
        # Of a name that is found nowhere else: executors keep files by their name.
        plan = replace(plan, states=f"{name}-{os.urandom(4).hex()}.states")
        with tempfile.TemporaryDirectory() as room:
            local = Path(room) / "states"
            write_states(local, parts)
            folder.take_in(local, f"{OWN}/{plan.states}")
    folder.write(f"{OWN}/{name}.json", plan.to_json())
    return plan


def _parts_of(initial: Any, plan: Plan) -> list[Part]:
    """The streams of a fleet by bucket."""
    fleet = initial if isinstance(initial, Fleet) else load(initial)
    if not isinstance(fleet, Fleet):
        raise BadInputError(f"initial: expected a fleet, got {fleet!r}")
    check_retuning(fleet.model._description(None, None), plan.model)
    keys = keys_of(fleet)
    if not keys:
        return []
    if isinstance(keys[0], str) != plan.texts:
        raise BadInputError(f"initial: its keys are such as {keys[0]!r}, those of the column {plan.key!r} are not")
    if fleet.variables != plan.values and (fleet.variables or fleet._calls.width != len(plan.values)):
        theirs = ", ".join(fleet.variables or ()) or f"{fleet._calls.width} variables"
        raise BadInputError(f"initial: its streams are of {theirs}, the values are {', '.join(plan.values)}")
    parts = split(fleet, buckets_of_list(keys, plan.n_buckets)).items()
    return [(number, part.to_bytes(), b"") for number, part in parts]
