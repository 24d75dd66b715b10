"""Styles of methods: the same color, dash and mark in every picture."""

from __future__ import annotations

from collections.abc import Iterable

from limpet.plots._style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Style

WINE, OLIVE, TEAL, INDIGO, BROWN = "#882255", "#999933", "#44AA99", "#332288", "#8C564B"  # Tol's, as safe as the others

METHOD_STYLES: dict[str, Style] = {
    "SRA": {"color": BLUE, "linestyle": "-", "linewidth": 2.6, "marker": "o", "zorder": 4},
    "Detector": {
        "color": BLUE,
        "linestyle": (0, (4, 1.5)),
        "linewidth": 1.95,
        "marker": "h",
        "markerfacecolor": "white",
        "markeredgewidth": 1.3,
        "zorder": 4,
    },
    "SDEM": {"color": VERMILION, "linestyle": (0, (5, 1.5)), "linewidth": 1.6, "marker": "s"},
    "iEM": {"color": ORANGE, "linestyle": (0, (1, 1)), "linewidth": 2.0, "marker": "^"},
    "sEM": {"color": GREEN, "linestyle": (0, (5, 1.5, 1, 1.5)), "linewidth": 1.6, "marker": "D"},
    "ADWIN": {"color": PURPLE, "linestyle": "-", "linewidth": 1.4, "marker": "v"},
    "KSWIN": {"color": SKY, "linestyle": (0, (8, 2)), "linewidth": 1.8, "marker": "P"},
    "PH": {"color": BLACK, "linestyle": (0, (2, 1.5)), "linewidth": 1.3, "marker": "X"},
    "IsolationForest": {"color": WINE, "linestyle": (0, (3, 1, 1, 1)), "linewidth": 1.5, "marker": "p"},
    "random": {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.5, "marker": "<"},
    "constant": {"color": GREY, "linestyle": (0, (6, 3)), "linewidth": 1.3, "marker": ">"},
    "abrupt": {"color": BLUE, "linestyle": "-", "linewidth": 2.2, "marker": "o"},
    "gradual": {"color": VERMILION, "linestyle": (0, (5, 1.5)), "linewidth": 2.0, "marker": "s"},
}
VARIANT_STYLES: list[Style] = [
    {"linestyle": (0, (4, 1.5)), "marker": "h"},
    {"linestyle": (0, (1, 1.2)), "marker": "d"},
    {"linestyle": (0, (6, 1.5, 1, 1.5, 1, 1.5)), "marker": "*"},
]
OTHER_STYLES: list[Style] = [
    {"color": TEAL, "linestyle": "-", "linewidth": 1.5, "marker": "h"},
    {"color": OLIVE, "linestyle": (0, (5, 2)), "linewidth": 1.5, "marker": "d"},
    {"color": INDIGO, "linestyle": (0, (1, 1.2)), "linewidth": 1.8, "marker": "*"},
    {"color": BROWN, "linestyle": (0, (5, 1.5, 1, 1.5)), "linewidth": 1.5, "marker": "<"},
]


def get_styles(names: Iterable[str]) -> dict[str, Style]:
    """Return the style of each method of a picture.

    A method that is not known by name has the color of the one it varies ("SRA-heldout" has that of SRA), with
    open marks and different dashes; any other takes the next style that is left.

    >>> styles = get_styles(["SRA", "SRA-heldout", "something else"])
    >>> styles["SRA"]["color"] == styles["SRA-heldout"]["color"] != styles["something else"]["color"]
    True
    """
    styles: dict[str, Style] = {}
    n_variants: dict[str, int] = {}
    n_others = 0
    for name in dict.fromkeys(names):
        family = name.split("-")[0]
        if name in METHOD_STYLES:
            styles[name] = METHOD_STYLES[name]
        elif family in METHOD_STYLES:
            nth = n_variants[family] = n_variants.get(family, -1) + 1
            thinner = 0.75 * METHOD_STYLES[family]["linewidth"]
            marker = {"linewidth": max(thinner, 1.2), "markerfacecolor": "white", "markeredgewidth": 1.3}
            styles[name] = METHOD_STYLES[family] | VARIANT_STYLES[nth % len(VARIANT_STYLES)] | marker
        else:
            styles[name] = OTHER_STYLES[n_others % len(OTHER_STYLES)]
            n_others += 1
    return styles


def get_line_style(style: Style) -> Style:
    """Return the style without its marks, for a line through many points."""
    return {key: value for key, value in style.items() if not key.startswith("marker")}


def get_dot_style(style: Style) -> Style:
    """Return the style without its line, for dots."""
    return {key: value for key, value in style.items() if not key.startswith("line")} | {"linestyle": "none"}
