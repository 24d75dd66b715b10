"""Data that is looked at: a file that was read, or a built-in stream."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.scheme.state import Vector
from holdfast.server.errors import Refused

MOST_COLUMNS = 16  # variables that are learnt at once, at most


@dataclass(frozen=True, eq=False)
class LookedAt:
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
    told: dict[str, Any] = field(default_factory=dict)
    suggested: dict[str, Any] = field(default_factory=dict)
    lines: str | None = None

    @property
    def size(self) -> int:
        """Bytes it takes, about."""
        times = 0 if self.times is None else 80 * len(self.times)
        keys = 0 if self.keys is None else 16 * len(self.keys)
        return self.values.nbytes + times + keys + (0 if self.means is None else self.means.nbytes) + 4096

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same points of the same variables at the same times."""
        about = repr((self.names, None if self.times is None else (self.times[0], self.times[-1])))
        return hashlib.sha256(about.encode("utf-8", "replace") + self.values.tobytes()).hexdigest()

    @cached_property
    def streams(self) -> list[dict[str, Any]]:
        """The keys with their numbers of points, in the order in which they first came."""
        counts: dict[str, int] = {}
        for key in () if self.keys is None else self.keys.tolist():
            counts[key] = counts.get(key, 0) + 1
        return [{"key": key, "rows": n} for key, n in counts.items()]

    def chosen(self, key: str | None, columns: list[str] | None) -> LookedAt:
        """One of its streams, some of its variables."""
        rows: Any = slice(None)
        if self.keys is not None:
            key = self.streams[0]["key"] if key is None else key
            rows = np.flatnonzero(self.keys == key)
            if not len(rows):
                raise Refused("unknown_key", f"there is no stream {key!r} in {self.name}")
        elif key is not None:
            raise Refused("unknown_key", f"{self.name} is one stream: it has no keys")
        unknown = [one for one in columns or () if one not in self.names]
        if unknown:
            raise Refused("unknown_column", f"there is no column {', '.join(map(repr, unknown))} in {self.name}")
        names = tuple(dict.fromkeys(columns)) if columns else self.names
        if len(names) > MOST_COLUMNS:
            raise Refused(
                "too_many_columns", f"at most {MOST_COLUMNS} columns are learnt together here, got {len(names)}"
            )
        which = [self.names.index(one) for one in names]
        return LookedAt(
            self.name,
            names,
            np.ascontiguousarray(self.values[rows][:, which]),
            self._times_of(rows),
            None,
            None if self.means is None else np.ascontiguousarray(self.means[:, :, which]),
            self.change_points,
            self.told,
            self.suggested,
            self.lines,
        )

    def _times_of(self, rows: Any) -> list[Any] | None:
        if self.times is None or isinstance(rows, slice):
            return self.times
        return [self.times[row] for row in rows.tolist()]
