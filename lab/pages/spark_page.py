"""Write the tables of docs/guide/spark.md, and how far it goes, from lab/results.

After `limpet bench spark spark_crash --json FILE`, run `python lab/pages/spark_page.py FILE`.
Without FILE the summaries present are used.
"""

import re
import sys
from pathlib import Path

from page_tools import ROOT, Figures, figure_table, load, put, table, take
from spark_reach import reach

from limpet_lab.bench._measurement import format_power_of_ten
from limpet_lab.bench.spark import BUCKET_COUNTS, N_GOAL_KEYS, KEY_COUNTS, PLAIN_MODEL, RATIO_LABEL, SPEED_LABEL, format_case

PAGE = ROOT / "docs" / "guide" / "spark.md"
NAMES = ("spark", "spark_crash")
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def page_with_figures(text: str) -> str:
    """Insert the tables into the text of the page."""
    figures = load("spark")
    grid = {format_case(PLAIN_MODEL, keys, buckets) for keys in KEY_COUNTS for buckets in BUCKET_COUNTS} - {format_case(PLAIN_MODEL, N_GOAL_KEYS)}
    listed = [figure for name in NAMES for figure in load(name).values() if figure.name.partition(": ")[0] not in grid]
    text = put(text, "figures", in_print(figure_table(listed)))
    text = put(text, "keys and buckets", in_print(keys_and_buckets(figures)))
    return put(text, "how far", in_print(reach(figures)))


def keys_and_buckets(figures: Figures) -> str:
    """Return rows per second, and over those of a pass-through, by keys and buckets."""
    rows = [[format_power_of_ten(keys), *(cell(figures, keys, buckets) for buckets in BUCKET_COUNTS)] for keys in KEY_COUNTS]
    return table(["keys", *(f"{buckets} buckets" for buckets in BUCKET_COUNTS)], rows)


def cell(figures: Figures, keys: int, buckets: int) -> str:
    """Return the cell of one number of keys and one of buckets."""
    speed, ratio = (figures.get(f"{format_case(PLAIN_MODEL, keys, buckets)}: {what}") for what in (SPEED_LABEL, RATIO_LABEL))
    return f"{speed.value / 1e3:.0f} thousand, {ratio.value:.2f} ×" if speed and ratio else "–"


def in_print(text: str) -> str:
    """Print 10^5 with a raised exponent.

    >>> in_print("10^5 keys")
    '10⁵ keys'
    """
    return re.sub(r"10\^(\d+)", lambda match: "10" + match[1].translate(POWERS), text)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), NAMES)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
