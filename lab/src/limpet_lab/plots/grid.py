"""Many panels in rows and columns, named at their outer edge, with one legend for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from limpet.plots._style import LETTERS, PAGE, new_page, small_panel

COLUMNS = {1: 2, 2: 2, 4: 2, 7: 4, 8: 4, 10: 5}  # for so many panels, where not three; one leaves room for a legend


class Grid:
    """A figure with so many panels, and the cells of its last row that are left over.

    Parameters
    ----------
    n_panels : int
        How many panels there are; they stand in two to five columns.
    shape : float
        The height of a panel as a multiple of its width.
    **sharing : bool
        ``sharex`` and ``sharey``, as matplotlib has them.
    """

    def __init__(self, n_panels: int, shape: float, **sharing: bool) -> None:
        self.columns = COLUMNS.get(n_panels, 3)
        n_rows = -(-n_panels // self.columns)
        self.figure = new_page(0.6 + n_rows * max(shape * PAGE / self.columns, 2.0))
        cells = self.figure.subplots(n_rows, self.columns, squeeze=False, **sharing).ravel()
        self.panels, self.spare = list(cells[:n_panels]), list(cells[n_panels:])
        for axes in self.panels:
            small_panel(axes)
        for axes in self.spare:
            axes.set_axis_off()

    def label(self, x_label: str, y_label: str = "") -> None:
        """Name the axes, below the lowest panel of each column and at the left of each row."""
        for axes in self.panels[-self.columns :]:
            axes.set_xlabel(x_label)
            axes.tick_params(labelbottom=True)
        for axes in self.panels[:: self.columns]:
            axes.set_ylabel(y_label)

    def add_legend(self) -> None:
        """Put one legend into the first cell that is left over, or above all panels."""
        if not self.spare:
            legend_above(self.figure, self.panels)
            return
        entries = _entries(self.panels)
        self.spare[0].legend(entries.values(), entries.keys(), loc="center", frameon=False, fontsize=LETTERS + 0.5)


def legend_above(figure: Any, panels: Iterable[Any], width: float = PAGE) -> Any:
    """Put one legend above all panels, with one entry for all that bears the same name, in as few lines as will do."""
    entries = _entries(panels)
    if not entries:
        return None
    legend = {"loc": "outside upper left", "ncols": _columns([len(name) for name in entries], width)}
    return figure.legend(entries.values(), entries.keys(), frameon=False, fontsize=LETTERS, **legend)


def _columns(lengths: list[int], width: float = PAGE) -> int:
    """Return how many columns of a legend fit in so many inches, for names of so many letters; it is filled by columns.

    >>> _columns([3, 4, 3]), _columns([15] * 9)
    (3, 5)
    """
    width_in_letters = (
        72.0 * width / LETTERS
    )  # in letters' heights: a letter is 0.6 wide, a mark and the gaps around it 5
    for n_lines in range(1, len(lengths)):
        columns = [lengths[first : first + n_lines] for first in range(0, len(lengths), n_lines)]
        if sum(0.6 * max(column) + 5.0 for column in columns) <= width_in_letters:
            return len(columns)
    return 1


def _entries(panels: Iterable[Any]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return entries
