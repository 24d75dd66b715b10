"""One measured figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """A number with its unit, and the most it may be, if something is claimed of it."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the goal was reached; a figure without one always is."""
        return self.at_most is None or self.value <= self.at_most

    @property
    def shown(self) -> str:
        """Value and unit.

        >>> Figure("step", 0.2781, "× ADWIN", 0.3).shown
        '0.278 × ADWIN'
        """
        return f"{self.value:.3g} {self.unit}".rstrip()

    @property
    def goal_shown(self) -> str:
        """The goal, if there is one."""
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def verdict(self) -> str:
        """A tick or a cross where there is a goal."""
        return "" if self.at_most is None else "✓" if self.reached else "✗"

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "reached": self.reached}
