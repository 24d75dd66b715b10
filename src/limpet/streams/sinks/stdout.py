"""Standard output as a sink: sentences or JSON lines."""

from __future__ import annotations

import sys
from datetime import datetime

from limpet.detection.alarm import format_alarm
from limpet.streams.results import ALARMS_TABLE, BatchResult, check_table, to_json_line, to_records
from limpet.streams.sinks.base import AtLeastOnceSink


class StdoutSink(AtLeastOnceSink):
    """Print alarms as sentences or JSON lines ("text", "json"), points as JSON lines."""

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
