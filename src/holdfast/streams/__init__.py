"""Sources, sinks, checkpoints, and what runs between them: `holdfast.run`."""

from holdfast.streams.batch import Batch
from holdfast.streams.places import open_sink, open_source
from holdfast.streams.results import BatchResult
from holdfast.streams.running import RunResult, run
from holdfast.streams.separate import SplitColumns
from holdfast.streams.sink import Sink
from holdfast.streams.source import Source

__all__ = ["Batch", "BatchResult", "RunResult", "Sink", "Source", "SplitColumns", "open_sink", "open_source", "run"]
