"""Data that is looked at: a file that was read, or a built-in stream."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.scheme.state import Vector
from holdfast.server.errors import ApiError

MAX_COLUMNS = 16  # variables that are learnt at once, at most


@dataclass(frozen=True, eq=False)
class ExplorerDataset:
    """Points in the order in which they came.

    name: of the file, or of the built-in stream. values: (n, d), NaN where one is missing.
    times: as they are told, None if there are none. keys: of which stream each point is, None if there is one stream.
    means: (n, K, d), where the truth is known. change_points: where they are. told: what was understood of a file.
    suggested: settings that suit it. lines: Python that makes it, for a built-in stream.
    """

    name: str
    names: tuple[str, ...]
    values: Vector
    times: list[Any] | None = None
    keys: npt.NDArray[np.object_] | None = None
    means: Vector | None = None
    change_points: list[int] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    suggested: dict[str, Any] = field(default_factory=dict)
    source_code: str | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes it takes, about."""
        times = 0 if self.times is None else 80 * len(self.times)
        keys = 0 if self.keys is None else 16 * len(self.keys)
        return self.values.nbytes + times + keys + (0 if self.means is None else self.means.nbytes) + 4096

    @cached_property
    def content_hash(self) -> str:
        """The same for the same points of the same variables at the same times."""
        header = repr((self.names, None if self.times is None else (self.times[0], self.times[-1])))
        return hashlib.sha256(header.encode("utf-8", "replace") + self.values.tobytes()).hexdigest()

    @cached_property
    def key_counts(self) -> list[dict[str, Any]]:
        """The keys with their numbers of points, in the order in which they first came."""
        counts: dict[str, int] = {}
        for key in () if self.keys is None else self.keys.tolist():
            counts[key] = counts.get(key, 0) + 1
        return [{"key": key, "rows": n} for key, n in counts.items()]

    def select(self, key: str | None, columns: list[str] | None) -> ExplorerDataset:
        """One of its streams, some of its variables."""
        rows: Any = slice(None)
        if self.keys is not None:
            key = self.key_counts[0]["key"] if key is None else key
            rows = np.flatnonzero(self.keys == key)
            if not len(rows):
                raise ApiError("unknown_key", f"there is no stream {key!r} in {self.name}")
        elif key is not None:
            raise ApiError("unknown_key", f"{self.name} is one stream: it has no keys")
        unknown = [column for column in columns or () if column not in self.names]
        if unknown:
            raise ApiError("unknown_column", f"there is no column {', '.join(map(repr, unknown))} in {self.name}")
        names = tuple(dict.fromkeys(columns)) if columns else self.names
        if len(names) > MAX_COLUMNS:
            raise ApiError(
                "too_many_columns", f"at most {MAX_COLUMNS} columns are learnt together here, got {len(names)}"
            )
        column_index = [self.names.index(column) for column in names]
        return ExplorerDataset(
            self.name,
            names,
            np.ascontiguousarray(self.values[rows][:, column_index]),
            self._select_times(rows),
            None,
            None if self.means is None else np.ascontiguousarray(self.means[:, :, column_index]),
            self.change_points,
            self.metadata,
            self.suggested,
            self.source_code,
        )

    def _select_times(self, rows: Any) -> list[Any] | None:
        if self.times is None or isinstance(rows, slice):
            return self.times
        return [self.times[row] for row in rows.tolist()]
