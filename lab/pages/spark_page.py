"""Writes the tables of docs/guide/spark.md, and how far it goes, from lab/results/spark.json.

After `limpet bench spark spark_crash --json FILE`: python lab/pages/spark_page.py FILE
takes the figures of FILE, and for a benchmark that it lacks keeps those taken before; without FILE it takes none.
"""

import json
import re
import sys
from pathlib import Path

from autopilot_page import Figures, load, table, take
from marked import put
from spark_reach import reach
from streams_page import table as table_of_figures

from limpet_lab.bench._measurement import power_of_ten
from limpet_lab.bench.spark import ALL_BUCKETS, GOAL_KEYS, KEYS, PLAIN, RATIO, SPEED, called

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results" / "spark.json"
PAGE = ROOT / "docs" / "guide" / "spark.md"
NAMES = ("spark", "spark_crash")
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def page_with_figures(text: str) -> str:
    """The page with the tables in their places."""
    results, figures = json.loads(RESULTS.read_text(encoding="utf-8")), load(RESULTS).get("spark", {})
    grid = {called(PLAIN, keys, buckets) for keys in KEYS for buckets in ALL_BUCKETS} - {called(PLAIN, GOAL_KEYS)}
    listed = {
        name: [figure for figure in results.get(name, []) if figure["name"].partition(": ")[0] not in grid]
        for name in NAMES
    }
    text = put(text, "figures", in_print(table_of_figures(listed, NAMES)))
    text = put(text, "keys and buckets", in_print(keys_and_buckets(figures)))
    return put(text, "how far", in_print(reach(figures)))


def keys_and_buckets(figures: Figures) -> str:
    """Rows a second, and how much of a pass-through's that is, by keys and buckets."""
    rows = [[power_of_ten(keys), *(cell(figures, keys, buckets) for buckets in ALL_BUCKETS)] for keys in KEYS]
    return table(["keys", *(f"{buckets} buckets" for buckets in ALL_BUCKETS)], rows)


def cell(figures: Figures, keys: int, buckets: int) -> str:
    """Of one number of keys and one of buckets."""
    speed, ratio = (figures.get(f"{called(PLAIN, keys, buckets)}: {what}") for what in (SPEED, RATIO))
    return f"{speed['value'] / 1e3:.0f} thousand, {ratio['value']:.2f} ×" if speed and ratio else "–"


def in_print(text: str) -> str:
    """10^5 as it is printed.

    >>> in_print("10^5 keys")
    '10⁵ keys'
    """
    return re.sub(r"10\^(\d+)", lambda match: "10" + match[1].translate(POWERS), text)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), RESULTS)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
