"""Figures, and their format as lines no wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

MAX_FULL_VALUE = 1e6


@dataclass(frozen=True)
class Figure:
    """A measured number with its unit, and the bounds that it must satisfy, if any."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_reached(self) -> bool:
        """Whether the goal was reached; True without a goal."""
        low, high = self.at_least, self.at_most
        return (high is None or self.value <= high) and (low is None or self.value >= low)

    @property
    def text(self) -> str:
        """Value and unit as text.

        >>> Figure("step", 0.2781, "× ADWIN", 0.3).text
        '0.278 × ADWIN'
        >>> Figure("state", 2880, "bytes").text
        '2880 bytes'
        """
        form = ".0f" if 100.0 <= abs(self.value) <= MAX_FULL_VALUE else ".3g"
        return f"{self.value:{form}} {self.unit}".rstrip()

    @property
    def goal_text(self) -> str:
        """The goal as text, "" without one.

        >>> Figure("recall", 0.9, "", at_least=0.8, at_most=1.0).goal_text
        '≥ 0.8, ≤ 1'
        """
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return ", ".join(f"{sign} {_format_bound(bound)}" for sign, bound in bounds if bound is not None)

    @property
    def verdict(self) -> str:
        """A tick or a cross, "" without a goal."""
        return "" if not self.goal_text else "✓" if self.is_reached else "✗"

    def without_goal(self) -> Figure:
        """Return the figure without its goal.

        >>> Figure("step", 0.4, "× ADWIN", 0.3).without_goal()
        Figure(name='step', value=0.4, unit='× ADWIN', at_most=None, at_least=None)
        """
        return replace(self, at_most=None, at_least=None)

    def to_dict(self) -> dict[str, object]:
        """Return the fields, for JSON."""
        return {**asdict(self), "reached": self.is_reached}


def _format_bound(bound: float) -> str:
    """Format integers with all their digits."""
    return f"{bound:.0f}" if abs(bound) <= MAX_FULL_VALUE and bound == round(bound) else f"{bound:g}"


def format_power_of_ten(n: int) -> str:
    """Format an integer, as a power of ten if it is one.

    >>> format_power_of_ten(100_000), format_power_of_ten(1500)
    ('10^5', '1,500')
    """
    power = len(str(n)) - 1
    return f"10^{power}" if n == 10**power else f"{n:,}"


INDENT, GAP = "  ", "  "


def format_lines(figures: Sequence[Figure], width: int = 80) -> Iterator[str]:
    """Format a line per figure; consecutive figures whose names begin alike, up to a colon, get a heading.

    >>> figures = [Figure("10^6 streams: update", 49.8, "million/s", at_least=50.0)]
    >>> figures += [Figure("10^6 streams: kernel", 58.4), Figure("state", 128, "bytes")]
    >>> print(*format_lines(figures), sep="\\n")
    10^6 streams
      update  49.8 million/s  ≥ 50  ✗
      kernel            58.4
    state          128 bytes
    """
    labelled = list(_label_figures(figures))
    columns = [[figure.text for figure in figures], [figure.goal_text for figure in figures]]
    measured, goal = (max(map(len, column), default=0) for column in columns)
    right = measured + (len(GAP) + goal + len(GAP) + 1 if goal else 0)
    left = min(max((len(label) for label, _ in labelled), default=0), width - right - len(GAP))
    for label, figure in labelled:
        if figure is None:
            yield label
            continue
        if len(label) > left:  # a separate line, the numbers below
            yield label
            label = ""
        numbers = f"{figure.text:>{measured}}{GAP}{figure.goal_text:>{goal}}{GAP}{figure.verdict}"
        yield f"{label:{left}}{GAP}{numbers}".rstrip()


def _label_figures(figures: Sequence[Figure]) -> Iterator[tuple[str, Figure | None]]:
    """Yield the labels at the left with their figures; None for a heading."""
    for head, group in groupby(figures, key=lambda figure: figure.name.partition(": ")[0]):
        members = list(group)
        if len(members) == 1 or members[0].name == head:
            yield members[0].name, members.pop(0)
        else:
            yield head, None
        for figure in members:
            yield INDENT + figure.name.removeprefix(head + ": "), figure
