"""Write the tables of docs/guide/spark.md, and how far it goes, from lab/results.

After `limpet bench spark spark_crash --json FILE`, run `python lab/pages/spark_page.py FILE`.
Without FILE the summaries present are used.
"""

import re
import sys
from pathlib import Path

from page_tools import ROOT, Figures, format_figure_table, format_table, import_run, insert_section, load_figures
from spark_reach import make_section

from limpet_lab.bench._measurement import format_power_of_ten
from limpet_lab.bench.spark import (
    BUCKET_COUNTS,
    KEY_COUNTS,
    N_GOAL_KEYS,
    PLAIN_MODEL,
    RATIO_LABEL,
    SPEED_LABEL,
    format_case,
)

PAGE = ROOT / "docs" / "guide" / "spark.md"
NAMES = ("spark", "spark_crash")
RAISED_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def fill_page(text: str) -> str:
    """Insert the tables into the text of the page."""
    figures = load_figures("spark")
    grid = {format_case(PLAIN_MODEL, keys, buckets) for keys in KEY_COUNTS for buckets in BUCKET_COUNTS} - {
        format_case(PLAIN_MODEL, N_GOAL_KEYS)
    }
    listed = [
        figure for name in NAMES for figure in load_figures(name).values() if figure.name.partition(": ")[0] not in grid
    ]
    text = insert_section(text, "figures", raise_exponents(format_figure_table(listed)))
    text = insert_section(text, "keys and buckets", raise_exponents(make_key_table(figures)))
    return insert_section(text, "how far", raise_exponents(make_section(figures)))


def make_key_table(figures: Figures) -> str:
    """Return rows per second, and over those of a pass-through, by keys and buckets."""
    rows = [
        [format_power_of_ten(keys), *(format_cell(figures, keys, buckets) for buckets in BUCKET_COUNTS)]
        for keys in KEY_COUNTS
    ]
    return format_table(["keys", *(f"{buckets} buckets" for buckets in BUCKET_COUNTS)], rows)


def format_cell(figures: Figures, keys: int, buckets: int) -> str:
    """Return the cell of one number of keys and one of buckets."""
    speed, ratio = (
        figures.get(f"{format_case(PLAIN_MODEL, keys, buckets)}: {label}") for label in (SPEED_LABEL, RATIO_LABEL)
    )
    return f"{speed.value / 1e3:.0f} thousand, {ratio.value:.2f} ×" if speed and ratio else "–"


def raise_exponents(text: str) -> str:
    """Print 10^5 with a raised exponent.

    >>> raise_exponents("10^5 keys")
    '10⁵ keys'
    """
    return re.sub(r"10\^(\d+)", lambda match: "10" + match[1].translate(RAISED_DIGITS), text)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), NAMES)
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
