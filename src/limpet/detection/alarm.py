"""Alarms, and the record that every output writes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

# Sinks, server, Spark and explorer add other fields.
ALARM_FIELDS = ("kind", "row", "time", "onset", "size", "direction", "variables", "p_value", "key", "message")


@dataclass(frozen=True)
class Alarm:
    """A change or an anomaly that a learner has detected.

    Attributes
    ----------
    kind : {"change", "anomaly"}
        Whether the stream has changed since `onset`, or this row is unusual. Of several unusual rows in sequence the
        first one raises the alarm.
    row : int
        The row at which it was detected; 0 is the first row of the stream.
    onset : int
        The estimated row at which it began.
    size : float
        Of a shift or an anomaly, the distance in standard deviations of the usual values; of a change of spread, the
        ratio of the new spread to the old one. Infinite after constant values, NaN if the few points since the onset
        do not show it.
    direction : {"up", "down", "wider", "narrower"}
        The direction of the change.
    variables : tuple of str or int
        The variables that contribute most, the largest first: names if the data had any, else indices.
    p_value : float or None
        Of an anomaly, the probability of a point at least as unusual.
    key : str, int or None
        The key of the stream in a fleet.
    time : str, float or None
        The time of the row, if the data had times.
    """

    kind: str
    row: int
    onset: int
    size: float
    direction: str
    variables: tuple[str | int, ...]
    p_value: float | None = None
    key: str | int | None = None
    time: Any = None

    def __str__(self) -> str:
        """Format the alarm as a sentence.

        >>> print(Alarm("change", 210, 201, 3.2, "up", ("temperature",)))
        row 210: change since row 201, temperature up by 3.2 standard deviations
        >>> print(Alarm("anomaly", 7, 7, 12.0, "down", (0,), 1e-5, "pump 3"))
        pump 3, row 7: anomaly, variable 0 down by 12 standard deviations
        """
        return format_alarm(self.to_dict())

    def rename_variables(self, names: Sequence[str] | None) -> Alarm:
        """Return the alarm with other names of its variables; None keeps the names."""
        return self if names is None else replace(self, variables=tuple(names))

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the record of the alarm, which JSON can hold.

        Parameters
        ----------
        names : sequence of str, optional
            The names of all variables of the stream, for alarms that have indices.

        Returns
        -------
        dict
            The fields `ALARM_FIELDS`. `size` is None where it is infinite or NaN, `message` is `description`.

        Examples
        --------
        >>> record = Alarm("change", 210, 201, math.inf, "up", (1,)).to_dict(["a", "b"])
        >>> record["row"], record["size"], record["variables"]
        (210, None, ['b'])
        >>> record["message"]
        'b up, after constant values'
        """
        named = self.rename_variables(names and [names[v] if isinstance(v, int) else v for v in self.variables])
        return {
            "kind": self.kind,
            "row": self.row,
            "time": self.time,
            "onset": self.onset,
            "size": self.size if math.isfinite(self.size) else None,
            "direction": self.direction,
            "variables": [str(variable) for variable in named.variables],
            "p_value": self.p_value,
            "key": self.key,
            "message": named.description,
        }

    @property
    def description(self) -> str:
        """The variables, direction and size as text, without key and row.

        >>> Alarm("change", 210, 201, 2.5, "wider", ("a", "b")).description
        'a, b wider, spread 2.5 times the old one'
        """
        variables = ", ".join(str(v) if isinstance(v, str) else f"variable {v}" for v in self.variables)
        if math.isnan(self.size):
            return f"{variables} {self.direction}"
        if math.isinf(self.size):
            return f"{variables} {self.direction}, after constant values"
        if self.direction in ("up", "down"):
            return f"{variables} {self.direction} by {_format_size(self.size)} standard deviations"
        return f"{variables} {self.direction}, spread {_format_size(self.size)} times the old one"


def most_important(alarms: Sequence[Alarm], n: int) -> list[int]:
    """Return the indices, in order, of at most n alarms: changes first, then by size.

    A factor of the spread counts as twice its logarithm in standard deviations, an unknown size as 0.
    """

    def weight(index: int) -> tuple[bool, float]:
        alarm = alarms[index]
        size = 0.0 if math.isnan(alarm.size) else alarm.size
        return alarm.kind == "change", size if alarm.direction in ("up", "down") else 2 * abs(math.log(max(size, 1e-9)))

    return sorted(sorted(range(len(alarms)), key=weight, reverse=True)[:n])


def format_alarm(record: Mapping[str, Any]) -> str:
    """Format the record of an alarm as a sentence: key, row, kind, onset and message.

    >>> format_alarm(Alarm("change", 210, 201, 3.2, "up", ("a",), key="pump 3").to_dict())
    'pump 3, row 210: change since row 201, a up by 3.2 standard deviations'
    """
    since = f" since row {record['onset']}" if record["onset"] != record["row"] else ""
    prefix = "" if record["key"] is None else f"{record['key']}, "
    return f"{prefix}row {record['row']}: {record['kind']}{since}, {record['message']}"


def _format_size(size: float) -> str:
    """Format a size with three digits, or as an integer with separators.

    >>> _format_size(3.217), _format_size(1195.7), _format_size(3e8)
    ('3.22', '1,196', '3e+08')
    """
    return f"{size:,.0f}" if 1000.0 <= size < 1e6 else f"{size:.3g}"
