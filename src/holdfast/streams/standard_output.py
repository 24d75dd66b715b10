"""Standard output as a sink: lines for people or for machines."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.tables import ALARMS, check_what, json_line, records_of


class StandardOutput(Sink):
    """Lines as they come. What has been printed cannot be taken back: after a crash some lines may come again.

    what: "alarms" or "points". form: "text", a sentence an alarm, or "json", an object a line.
    """

    def __init__(self, what: str = ALARMS, form: str = "text") -> None:
        self.what, self.form = check_what(what), form
        self.name = f"{what} to standard output"

    def write(self, results: Results) -> None:
        """Prints them at once."""
        records = records_of(results, self.what)
        if self.form == "text" and self.what == ALARMS:
            now = datetime.now().isoformat(" ", "seconds")  # where points have no times, when it was noticed
            lines = [f"{now if row['time'] is None else row['time']} {row['message']}" for row in records]
        else:
            lines = [json_line(record) for record in records]
        if lines:
            if self.form == "text":
                lines = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
            text, encoding = "".join(f"{line}\n" for line in lines), getattr(sys.stdout, "encoding", None) or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()

    def flush(self) -> Any:
        """All has been printed."""
        return mark_of(self)

    def rewind(self, mark: Any) -> None:
        """What has been printed stays."""
        if mark is not None:
            parts_of(self, mark)
