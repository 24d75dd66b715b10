"""What a sink is."""

from __future__ import annotations

from typing import Any

from holdfast.errors import CheckpointError
from holdfast.streams.results import BatchResult


class Sink:
    """Where results go. A sink of your own needs `write`; with `flush` and `rewind` nothing is told twice.

    write(results): the results of a batch, in the order in which they came.
    flush(): makes sure that all that was written will be there after a crash, and says how far it has come: a mark,
        which is anything that JSON can hold.
    rewind(mark): called once before the first `write`. Takes back all that was written after this mark, so that it
        can be written again; None: nothing has been written yet. A sink that cannot take anything back will tell some
        results twice after a crash.
    claim(): called after `rewind(None)` by a run with checkpoints: what is written from now on may have to be taken
        back, so that no other run must add to it.
    drain(): nothing more will be written. A sink that still has something to deliver may wait a little, before the last
        `flush`. hurry(): somebody wants to stop, so `write` must not wait any more; may be called at any moment.
    close(): at the end. undelivered: how many results it could not deliver, which without a checkpoint are lost.

    name: what it is and where, as it may be shown, which its marks hold. alone: whether two of one name would be in
    each other's way.
    """

    name: str = ""
    is_exclusive: bool = False
    undelivered: int = 0

    def write(self, results: BatchResult) -> None:
        """The results of a batch."""
        raise NotImplementedError

    def flush(self) -> Any:
        """How far it has come."""
        return None

    def truncate_to(self, offset: Any) -> None:
        """Goes back to a mark."""

    def acquire(self) -> None:
        """What is written from now on is this run's alone."""

    def drain(self) -> None:
        """Delivers what can be delivered soon."""

    def stop_waiting(self) -> None:
        """Waits for nobody from now on."""

    def close(self) -> None:
        """Nothing more will come."""


def make_offset(sink: Sink, **parts: Any) -> dict[str, Any]:
    """A mark that says of which sink it is."""
    return {"sink": sink.name, **parts}


def check_offset(sink: Sink, offset: Any) -> dict[str, Any]:
    """What a mark holds, if it is one of this sink."""
    if not isinstance(offset, dict) or "sink" not in offset:
        raise CheckpointError(f"the checkpoint says nothing of {sink.name}: give another --checkpoint folder")
    if offset["sink"] != sink.name:
        raise CheckpointError(
            f"the checkpoint is of {offset['sink']}, now it is {sink.name}: give the same, or another --checkpoint folder"
        )
    return offset
