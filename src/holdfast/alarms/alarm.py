"""An alarm: what is told to people."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
        which = ", ".join(str(v) if isinstance(v, str) else f"variable {v}" for v in self.variables)
        if math.isnan(self.size):
            how = f"{which} {self.direction}"
        elif math.isinf(self.size):
            how = f"{which} {self.direction}, after values that were all the same"
        elif self.direction in ("up", "down"):
            how = f"{which} {self.direction} by {self.size:.3g} standard deviations"
        else:
            how = f"{which} {self.direction}, spread {self.size:.3g} times the old one"
        since = f" since row {self.onset}" if self.onset != self.row else ""
        whose = "" if self.key is None else f"{self.key}, "
        return f"{whose}row {self.row}: {self.kind}{since}, {how}"
