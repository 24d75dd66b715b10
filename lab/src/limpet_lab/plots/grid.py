"""Many panels in rows and columns, named at their outer edge, with one legend for all."""

from __future__ import annotations

from limpet.plots._style import PAGE_WIDTH_IN, TEXT_PT, add_legend_above, legend_entries, style_small_panel
from limpet_lab.plots.axes import new_page

# By the number of panels; three for other numbers. One panel leaves space for a legend.
COLUMN_COUNTS = {1: 2, 2: 2, 4: 2, 7: 4, 8: 4, 10: 5}


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
        self.columns = COLUMN_COUNTS.get(n_panels, 3)
        n_rows = -(-n_panels // self.columns)
        self.figure = new_page(0.6 + n_rows * max(shape * PAGE_WIDTH_IN / self.columns, 2.0))
        cells = self.figure.subplots(n_rows, self.columns, squeeze=False, **sharing).ravel()
        self.panels, self.spare = list(cells[:n_panels]), list(cells[n_panels:])
        for axes in self.panels:
            style_small_panel(axes)
        for axes in self.spare:
            axes.set_axis_off()

    def label_axes(self, x_label: str, y_label: str = "") -> None:
        """Name the axes, below the lowest panel of each column and at the left of each row."""
        for axes in self.panels[-self.columns :]:
            axes.set_xlabel(x_label)
            axes.tick_params(labelbottom=True)
        for axes in self.panels[:: self.columns]:
            axes.set_ylabel(y_label)

    def add_legend(self) -> None:
        """Put one legend into the first cell that is left over, or above all panels."""
        if not self.spare:
            add_legend_above(self.figure, self.panels)
            return
        entries = legend_entries(self.panels)
        self.spare[0].legend(entries.values(), entries.keys(), loc="center", frameon=False, fontsize=TEXT_PT + 0.5)
