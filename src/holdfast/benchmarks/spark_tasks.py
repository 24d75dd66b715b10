"""What stands beside the learning in Spark's plan, to be timed: nothing at all, and one learner for each key."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.engines.spark.columns import ALARMS_COLUMN, alarm_type, output_columns
from holdfast.engines.spark.plan import JobSpec
from holdfast.engines.spark.schema import OUTPUT_TYPES
from holdfast.engines.spark.state import StateValue, to_state_value
from holdfast.engines.spark.tasks import StatefulTask

ANSWERED = "sensor bigint, ts timestamp, value double, score double, dropped boolean"
ONE_STATE = "learner binary"


class PassThrough(StatefulTask):
    """Learns nothing: the same rows come and go, and the same states are read and written."""

    def learnt(self, number: int, table: Any, state: Any) -> tuple[Any, StateValue]:
        """The rows of a bucket with constants beside them, and its state as it was."""
        plan = self.load_spec()
        kept: StateValue = (
            tuple(state.get) if state.exists else to_state_value(self.load_partition(plan, number, state))
        )
        return with_constants(table, plan), kept


def with_constants(table: Any, plan: JobSpec) -> Any:
    """The table with columns like those of the answers."""
    import pyarrow

    n = len(table)
    constants = {"double": pyarrow.array(np.zeros(n)), "boolean": pyarrow.array(np.zeros(n, np.bool_))}
    for name in output_columns(plan.is_auto, plan.time is not None):
        column = pyarrow.nulls(n, alarm_type()) if name == ALARMS_COLUMN else constants[OUTPUT_TYPES[name]]
        table = table.append_column(plan.prefix + name, column)
    return table


@dataclass(frozen=True)
class OneByOne:
    """For applyInPandasWithState with a group for each key: its learner's bytes are its state.

    first: the bytes of a learner that has started.
    """

    first: bytes

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """The rows of one key with the answers beside them."""
        import pandas

        from holdfast.learners import from_bytes

        learner: Any = from_bytes(bytes(state.get[0]) if state.exists else self.first)
        warnings.simplefilter("ignore", FutureWarning)  # of Spark's own joining of frames
        frame = pandas.concat(list(frames)).sort_values("ts", kind="stable")
        trace = learner.process(frame["value"].to_numpy())
        state.update((learner.to_bytes(),))
        yield frame.assign(score=trace.score, dropped=trace.dropped)
