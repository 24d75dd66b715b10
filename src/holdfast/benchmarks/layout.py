"""Figures as lines of text that are no wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from holdfast.benchmarks.figure import Figure

INDENT, GAP = "  ", "  "


def lines(figures: Sequence[Figure], width: int = 80) -> Iterator[str]:
    """One for each figure; above figures that begin alike, up to a colon, and follow each other, one with that.

    >>> figures = [Figure("10^6 streams: update", 49.8, "million/s", at_least=50.0)]
    >>> figures += [Figure("10^6 streams: kernel", 58.4), Figure("state", 128, "bytes")]
    >>> print(*lines(figures), sep="\\n")
    10^6 streams
      update  49.8 million/s  ≥ 50  ✗
      kernel            58.4
    state          128 bytes
    """
    labelled = list(_labels(figures))
    columns = [[figure.shown for figure in figures], [figure.goal_shown for figure in figures]]
    measured, goal = (max(map(len, column), default=0) for column in columns)
    right = measured + (len(GAP) + goal + len(GAP) + 1 if goal else 0)
    left = min(max((len(label) for label, _ in labelled), default=0), width - right - len(GAP))
    for label, figure in labelled:
        if figure is None:
            yield label
            continue
        if len(label) > left:  # a line of its own, the numbers below
            yield label
            label = ""
        numbers = f"{figure.shown:>{measured}}{GAP}{figure.goal_shown:>{goal}}{GAP}{figure.verdict}"
        yield f"{label:{left}}{GAP}{numbers}".rstrip()


def _labels(figures: Sequence[Figure]) -> Iterator[tuple[str, Figure | None]]:
    """What stands at the left, with the figure; None beside a heading."""
    for head, group in groupby(figures, key=lambda figure: figure.name.partition(": ")[0]):
        members = list(group)
        if len(members) == 1 or members[0].name == head:
            yield members[0].name, members.pop(0)
        else:
            yield head, None
        for figure in members:
            yield INDENT + figure.name.removeprefix(head + ": "), figure
