"""Sources, sinks, checkpoints, and what runs between them: `holdfast.run`."""

from holdfast.streams.batch import Batch
from holdfast.streams.places import sink_at, source_at
from holdfast.streams.results import Results
from holdfast.streams.running import Outcome, run
from holdfast.streams.separate import Separate
from holdfast.streams.sink import Sink
from holdfast.streams.source import Source

__all__ = ["Batch", "Outcome", "Results", "Separate", "Sink", "Source", "run", "sink_at", "source_at"]
