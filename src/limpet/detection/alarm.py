"""An alarm: what is told to people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Alarm:
    """Something has happened.

    kind: "change" (the stream is another one since `onset`) or "anomaly" (this row stands out, and maybe some that
        follow it: an alarm is raised at the first of them).
    row: where it was noticed. onset: where it began, as far as can be told. Rows count from the first point of the
        stream.
    size: of a shift or an anomaly, the distance in standard deviations of what was usual before; of a change of spread,
        the new spread over the old one. Infinite after values that were all the same; NaN where the few points since
        the onset do not show it.
    direction: "up", "down", "wider" or "narrower".
    variables: the variables that carry it, the one that carries most first: names if the data had any, or numbers.
    p_value: of an anomaly, how rare a point so far out is. key: of the stream, where it is one of a fleet.
    """

    kind: str
    row: int
    onset: int
    size: float
    direction: str
    variables: tuple[str | int, ...]
    p_value: float | None = None
    key: str | int | None = None

    def __str__(self) -> str:
        """In words.

        >>> print(Alarm("change", 210, 201, 3.2, "up", ("temperature",)))
        row 210: change since row 201, temperature up by 3.2 standard deviations
        >>> print(Alarm("anomaly", 7, 7, 12.0, "down", (0,), 1e-5, "pump 3"))
        pump 3, row 7: anomaly, variable 0 down by 12 standard deviations
        """
        since = f" since row {self.onset}" if self.onset != self.row else ""
        prefix = "" if self.key is None else f"{self.key}, "
        return f"{prefix}row {self.row}: {self.kind}{since}, {self.description}"

    def rename_variables(self, names: Sequence[str] | None) -> Alarm:
        """The same with these names of its variables; None leaves them as they are."""
        return self if names is None else replace(self, variables=tuple(names))

    @property
    def description(self) -> str:
        """What happened to which variables, in words.

        >>> Alarm("change", 210, 201, 2.5, "wider", ("a", "b")).what
        'a, b wider, spread 2.5 times the old one'
        """
        which = ", ".join(str(v) if isinstance(v, str) else f"variable {v}" for v in self.variables)
        if math.isnan(self.size):
            return f"{which} {self.direction}"
        if math.isinf(self.size):
            return f"{which} {self.direction}, after values that were all the same"
        if self.direction in ("up", "down"):
            return f"{which} {self.direction} by {_format_size(self.size)} standard deviations"
        return f"{which} {self.direction}, spread {_format_size(self.size)} times the old one"


def _format_size(size: float) -> str:
    """A size as people write it.

    >>> _few_digits(3.217), _few_digits(1195.7), _few_digits(3e8)
    ('3.22', '1,196', '3e+08')
    """
    return f"{size:,.0f}" if 1000.0 <= size < 1e6 else f"{size:.3g}"
