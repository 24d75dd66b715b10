"""Sources, sinks, checkpoints, and the runner between them: `limpet.run`."""

from limpet.streams.batch import Batch, InputErrorLog, check_same_position_field
from limpet.streams.formats.json import batch_from_records
from limpet.streams.results import BatchResult
from limpet.streams.runner import RunResult, run
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sinks.files import LinesFile
from limpet.streams.sources.base import BaseSource, SplitColumns
from limpet.streams.uri import open_sink, open_source

__all__ = [
    "BaseSink",
    "BaseSource",
    "Batch",
    "BatchResult",
    "ColumnSpec",
    "InputErrorLog",
    "LinesFile",
    "RunResult",
    "Schema",
    "SplitColumns",
    "batch_from_records",
    "check_offset",
    "check_same_position_field",
    "infer_schema",
    "make_offset",
    "open_sink",
    "open_source",
    "run",
]
