"""Files of lines as sinks: what was written after a mark is cut off again."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink
from holdfast.streams.tables import ALARMS, check_what, columns_of, json_line, records_of, rows_of


class LinesFile(Sink):
    """A file that lines are added to. what: "alarms" or "points". anew: whether what is there is written over."""

    def __init__(self, path: str | os.PathLike[str], what: str = ALARMS, *, anew: bool = False) -> None:
        self.path, self.what = Path(path), check_what(what)
        if not self.path.absolute().parent.is_dir():
            raise BadInputError(f"{self.path} cannot be written: there is no folder {self.path.parent}")
        try:
            self._file = open(self.path, "wb" if anew else "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from None

    def write(self, results: Results) -> None:
        """Adds lines; others can read them at once."""
        rest = memoryview(self.lines(results).encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> BadInputError:
        return BadInputError(f"{self.path} cannot be written: {(error.strerror or str(error)).lower()}")

    def lines(self, results: Results) -> str:
        """The results as lines."""
        raise NotImplementedError

    def flush(self) -> int:
        """How many bytes the file has, all of them on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._error(error) from None
        return self._file.tell()

    def rewind(self, mark: Any) -> None:
        """Cuts off what came after the mark."""
        size = os.fstat(self._file.fileno()).st_size
        if mark is None:
            return
        if size < mark:
            raise CheckpointError(f"{self.path} has {size:,} bytes, the checkpoint knows of {mark:,}: lines are gone")
        self._file.truncate(mark)
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class JsonLinesFile(LinesFile):
    """A JSON object a line."""

    def lines(self, results: Results) -> str:
        """One line a row."""
        return "".join(f"{json_line(record)}\n" for record in records_of(results, self.what))


class CsvFile(LinesFile):
    """Separated values, the names first."""

    _names: Sequence[str] | None = None

    def lines(self, results: Results) -> str:
        """One line a row; before the first one the names, unless they are there already."""
        if not len(results) or (self.what == ALARMS and not results.trace.alarms and self._file.tell()):
            return ""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self._names is None:
            self._names = columns_of(results, self.what)
            if not self._file.tell():
                writer.writerow(self._names)
            else:
                self._check_names()
        for row in rows_of(results, self.what):
            writer.writerow([_cell(one) for one in row])
        return text.getvalue()

    def _check_names(self) -> None:
        with open(self.path, encoding="utf-8", errors="replace", newline="") as file:
            found = next(csv.reader(file), [])
        if found != list(self._names or ()):
            raise BadInputError(
                f"{self.path} has other columns: {', '.join(found)}; expected {', '.join(self._names or ())}. "
                "Give the name of another file"
            )


def _cell(value: Any) -> Any:
    """A value as it stands in a file; several are separated by spaces.

    >>> _cell(True), _cell(["a", "b"]), _cell(None)
    (1, 'a b', None)
    """
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, list) else value
