"""Sources, sinks, checkpoints, and the runner between them: `limpet.run`."""

from limpet.streams.batch import Batch
from limpet.streams.results import BatchResult
from limpet.streams.runner import RunResult, run
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sources.base import BaseSource, SplitColumns
from limpet.streams.uri import open_sink, open_source

__all__ = [
    "BaseSink",
    "BaseSource",
    "Batch",
    "BatchResult",
    "RunResult",
    "SplitColumns",
    "check_offset",
    "make_offset",
    "open_sink",
    "open_source",
    "run",
]
