"""Standard output as a sink: lines for people or for machines."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from limpet.detection.alarm import format_alarm
from limpet.streams.results import ALARMS_TABLE, BatchResult, check_table, to_json_line, to_records
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset


class StdoutSink(BaseSink):
    """Lines as they come. What has been printed cannot be taken back: after a crash some lines may come again.

    what: "alarms" or "points". form: "text", a sentence an alarm, or "json", an object a line.
    """

    def __init__(self, table: str = ALARMS_TABLE, form: str = "text") -> None:
        self.table, self.form = check_table(table), form
        self.name = f"{table} to standard output"

    def write(self, results: BatchResult) -> None:
        """Prints them at once."""
        records = to_records(results, self.table)
        if self.form == "text" and self.table == ALARMS_TABLE:
            now = datetime.now().isoformat(" ", "seconds")  # where points have no times, when it was noticed
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
        """All has been printed."""
        return make_offset(self)

    def truncate_to(self, offset: Any) -> None:
        """What has been printed stays."""
        if offset is not None:
            check_offset(self, offset)
