"""Standard output as a sink: sentences or JSON lines."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from limpet.detection.alarm import format_alarm
from limpet.streams.results import ALARMS_TABLE, BatchResult, check_table, to_json_line, to_records
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset


class StdoutSink(BaseSink):
    """Prints results: at-least-once, since printed lines cannot be undone.

    Parameters
    ----------
    table : {"alarms", "points"}
        What to print.
    form : {"text", "json"}
        A sentence per alarm, or JSON lines. Points are JSON lines in both cases.
    """

    def __init__(self, table: str = ALARMS_TABLE, form: str = "text") -> None:
        self.table, self.form = check_table(table), form
        self.name = f"{table} to standard output"

    def write(self, results: BatchResult) -> None:
        """Print the results of a batch."""
        records = to_records(results, self.table)
        if self.form == "text" and self.table == ALARMS_TABLE:
            now = datetime.now().isoformat(" ", "seconds")  # of detection, for points without times
            lines = [f"{now if row['time'] is None else row['time']} {format_alarm(row)}" for row in records]
        else:
            lines = [to_json_line(record) for record in records]
        if lines:
            if self.form == "text":
                lines = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
            text, encoding = "".join(f"{line}\n" for line in lines), getattr(sys.stdout, "encoding", None) or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()

    def flush(self) -> Any:
        """Return an offset that identifies the sink only."""
        return make_offset(self)

    def truncate_to(self, offset: Any) -> None:
        """Check the offset; printed lines stay."""
        if offset is not None:
            check_offset(self, offset)
