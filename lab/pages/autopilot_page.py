"""Writes the figures of docs/guide/autopilot.md and alarms.md from lab/results/autopilot.json, and draws their pictures.

After `limpet bench promise delays robustness real_streams cost lean --json FILE`, `autopilot_page.py FILE` takes the
figures of FILE, and for benchmarks that it lacks keeps those taken before; without FILE it takes none.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from marked import put

from limpet_lab.bench.compact_memory import KINDS, MEMORIES, STREAMS, bytes_of
from limpet_lab.bench.detection_delay import AFTER
from limpet_lab.bench.false_alarm_rate import FAMILIES, RATES, SHARES, UNPROMISED

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results" / "autopilot.json"
GUIDE = ROOT / "docs" / "guide"
NOTHING = "*Not measured yet.*\n"
RATE_LABELS = {1e-3: "10⁻³", 1e-4: "10⁻⁴", 1e-5: "10⁻⁵"}
OURS, RATIO_PREFIX = "ours", "ours over "

Figures = dict[str, dict]
Results = dict[str, Figures]


def load(path: Path) -> Results:
    """Benchmark → name → figure; empty if there is no such file."""
    if not path.exists():
        return {}
    parts = json.loads(path.read_text(encoding="utf-8"))
    return {name: {figure["name"]: figure for figure in part} for name, part in parts.items() if isinstance(part, list)}


def take(path: Path, results: Path = RESULTS) -> None:
    """Copies the figures of a run; parts that it lacks stay as they were."""
    before = {} if not results.exists() else json.loads(results.read_text(encoding="utf-8"))
    kept = {name: part for name, part in before.items() if isinstance(part, list)}
    new = json.loads(path.read_text(encoding="utf-8"))
    if new.get("quick"):
        sys.exit(f"{path} is a taste (--quick): the pages show whole runs")
    results.write_text(json.dumps(kept | new, indent=1) + "\n", encoding="utf-8")


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """In Markdown; the first columns hold words, the others numbers."""
    lines = ["| " + " | ".join(row) + " |" for row in rows if any(cell.strip(" –/") for cell in row[words:])]
    if not lines:
        return NOTHING
    rule = "|" + "---|" * words + "---:|" * (len(heading) - words)
    return "\n".join(["| " + " | ".join(heading) + " |", rule, *lines]) + "\n"


def number(figures: Figures, name: str, digits: int = 2) -> str:
    """The value of a figure, or a dash."""
    return f"{figures[name]['value']:.{digits}f}" if name in figures else "–"


def missed(figures: Iterable[dict]) -> list[dict]:
    """Those whose goal was not reached."""
    return [figure for figure in figures if not figure["reached"]]


# The promise


def promised_rates(figures: Figures, kind: str, early: bool = False) -> str:
    """Observed over promised rate of one kind of alarm; three shares of outliers in a cell."""
    when = ", rows 200–2000" if early else ""
    rates = [far for far in RATES if far > 1e-5 or not early]
    rows = [
        [
            name,
            str(d),
            *(
                " / ".join(
                    number(figures, f"{kind}, {name}, d={d}, {share:.0%} outliers, far {far:g}{when}")
                    for share in SHARES
                )
                for far in rates
            ),
        ]
        for d in (1, 3)
        for name in FAMILIES
    ]
    return table(["stream", "d", *(f"far = {RATE_LABELS[far]}" for far in rates)], rows, 2)


def verdict(figures: Figures) -> str:
    """In words: how many cells, the largest, and those that miss the goal."""
    lines = []
    for kind in ("change", "anomaly"):
        cells = [figure for name, figure in figures.items() if name.startswith(f"{kind}, ")]
        if cells:
            worst = max(cells, key=lambda figure: figure["value"])
            where = worst["name"].removeprefix(f"{kind}, ")
            lines.append(f"- {kind} alarms, {len(cells)} cells: the largest is {worst['value']:.2f} ({where}).")
            if missed(cells):
                names = "; ".join(f"{c['value']:.2f} ({c['name'].removeprefix(f'{kind}, ')})" for c in missed(cells))
                lines.append(f"  Outside the goal: {names}.")
    return "\n".join(lines) + "\n" if lines else NOTHING


def not_promised(figures: Figures) -> str:
    """Alarms outside the goal: changes as they come, without the second lock, told of the memory; and anomalies."""
    rows = []
    for name in UNPROMISED:
        for far in RATES[:2]:
            start = f"not promised: change, {name}, far {far:g}"
            with_season = [each for each in figures if each.startswith(f"{start}, told ")]
            words = (
                f"{number(figures, with_season[0])} (`{with_season[0].removeprefix(f'{start}, told ')}`)"
                if with_season
                else ""
            )
            row = [number(figures, start), number(figures, f"{start}, without the second lock"), words]
            rows.append([name, RATE_LABELS[far], *row, number(figures, f"not promised: anomaly, {name}, far {far:g}")])
    return table(["stream", "far", "changes", "without the second lock", "told", "anomalies"], rows, 2)


# Delays and bursts


def delays_of(figures: Figures, share: float) -> dict[str, dict[str, float]]:
    """Method → kind of change → median delay."""
    delays: dict[str, dict[str, float]] = {}
    for name, figure in figures.items():
        kind, _, rest = name.partition(f", {share:.0%} outliers: ")
        if rest and not rest.startswith(RATIO_PREFIX):
            delays.setdefault(rest, {})[kind] = figure["value"]
    return delays


def delay_table(figures: Figures, share: float) -> str:
    """Median delays, a line for each method, in points; none where fewer than half of the changes were found."""
    delays = delays_of(figures, share)
    kinds = list(dict.fromkeys(kind for row in delays.values() for kind in row))

    def cell(row: dict[str, float], kind: str) -> str:
        return "–" if kind not in row else "none" if row[kind] >= AFTER else f"{row[kind]:g}"

    rows = [
        ["**limpet**" if name == OURS else name, *(cell(row, kind) for kind in kinds)] for name, row in delays.items()
    ]
    return table(["", *kinds], rows)


def burst_table(figures: Figures) -> str:
    """How often a burst of outliers raises a change alarm, over what was promised."""
    sizes = (0, 1, 2, 3, 4, 6, 8)
    rows = [[f"d = {d}", *(number(figures, f"burst of {size}, d={d}") for size in sizes)] for d in (1, 3)]
    return table(["outliers in a row", *map(str, sizes)], rows)


# Never deaf, real streams, cost


def recovery(figures: Figures) -> str:
    """The share of runs in which the truth was found again: in all, with hindsight, and in the worst group."""
    rows = []
    for name, figure in figures.items():
        title, _, runs = name.partition(": of ")
        if runs and figure["unit"] == "%":
            hindsight = f"{title}: with hindsight"
            groups = {
                other.removeprefix(f"{title}: "): each["value"]
                for other, each in figures.items()
                if other.startswith(f"{title}: ") and other not in (name, hindsight)
            }
            worst = min(groups, key=lambda group: groups[group]) if groups else ""
            worst_cell = f"{groups[worst]:.1f} % ({worst})" if groups else "–"
            rows.append([title, runs, f"{figure['value']:.1f} %", f"{number(figures, hindsight, 1)} %", worst_cell])
    return table(["what happened", "runs", "found again", "with hindsight", "worst group"], rows)


def bursts(figures: Figures) -> str:
    """What bursts of outliers do to the estimate."""
    rows = [
        [name.removeprefix("bursts, "), f"{figure['value']:.3g} {figure['unit']}"]
        for name, figure in figures.items()
        if name.startswith("bursts, ")
    ]
    return table(["bursts of 1 to 8 outliers", ""], rows)


def accuracy(figures: Figures) -> str:
    """The mean squared errors on the paper's streams."""
    rows = [
        [name, f"{figure['value']:.2g}", "" if figure["at_most"] is None else f"≤ {figure['at_most']:g}"]
        for name, figure in figures.items()
        if ": S_" in name
    ]
    return table(["stream", "error", "goal"], rows)


def real_streams(figures: Figures) -> str:
    """A line for each measure, a column for each method."""
    measured: dict[str, dict[str, float]] = {}
    for name, figure in figures.items():
        measure, _, method = name.rpartition(": ")
        measured.setdefault(measure, {})[method] = figure["value"]
    methods = list(dict.fromkeys(method for row in measured.values() for method in row))
    rows = [[measure, *(f"{row[m]:.3g}" if m in row else "–" for m in methods)] for measure, row in measured.items()]
    return table(["", *(f"`{m}`" if m == "SRA()" else m for m in methods)], rows)


def cost(figures: Figures) -> str:
    """Time a point and bytes of state, by kind of stream."""
    rows = []
    for K in (1, 2):
        for d in (1, 3, 8):
            size = bytes_of("full", K, d)
            times = [number(figures, f"{how}, K={K}, d={d}", 0) for how in ("process", "score", "update")]
            rows.append([f"K = {K}, d = {d}", *times, f"{size:,}"])
    adwin = f"\nRiver’s `ADWIN.update` in the same run: {number(figures, 'ADWIN.update', 0)} ns a point.\n"
    heading = ["stream", "`process`, ns a point", "`score`, ns a point", "`update`, ns a point", "bytes of state"]
    return table(heading, rows) + (adwin if figures else "")


def memory(figures: Figures) -> str:
    """The lean setting beside the full one: bytes, times, delays."""
    rows = []
    for K in (1, 2):
        rows.append([f"bytes a stream, K = {K}", *(f"{bytes_of(each, K):,}" for each in MEMORIES)])
        times = [number(figures, f"process, {each}, K={K}", 0) for each in MEMORIES]
        rows.append([f"`process`, ns a point, K = {K}", *times])
    for share in (0.0, 0.05):
        for kind in KINDS:
            label = f"{kind.name}, {share:.0%} outliers"
            rows.append([f"delay, {label}", *(number(figures, f"{label}: {each}", 0) for each in MEMORIES)])
    return table(["", "full", "lean"], rows)


def compact_rates(figures: Figures) -> str:
    """Observed over promised rates of the lean setting: clean / 5 % outliers in a cell."""
    rows = []
    for name in STREAMS:
        cells = [
            " / ".join(number(figures, f"{kind}, {name}, {share:.0%} outliers, far {far:g}") for share in (0.0, 0.05))
            for kind in ("change", "anomaly")
            for far in (1e-3, 1e-4)
        ]
        rows.append([name, *cells])
    heading = [f"{kind}, far {RATE_LABELS[far]}" for kind in ("changes", "anomalies") for far in (1e-3, 1e-4)]
    return table(["stream", *heading], rows)


def pages() -> dict[str, dict[str, str]]:
    """Page → mark → what stands there."""
    results = load(RESULTS)
    promise, delays, robustness = (results.get(name, {}) for name in ("promise", "delays", "robustness"))
    return {
        "autopilot.md": {
            "never deaf": recovery(robustness),
            "never fooled": bursts(robustness),
            "errors": accuracy(robustness),
            "real streams": real_streams(results.get("real_streams", {})),
            "cost": cost(results.get("cost", {})),
            "memory": memory(results.get("lean", {})),
            "lean rates": compact_rates(results.get("lean", {})),
        },
        "alarms.md": {
            "verdict": verdict(promise),
            "change rates": promised_rates(promise, "change"),
            "anomaly rates": promised_rates(promise, "anomaly"),
            "early change rates": promised_rates(promise, "change", early=True),
            "early anomaly rates": promised_rates(promise, "anomaly", early=True),
            "delays, clean": delay_table(delays, 0.0),
            "delays, outliers": delay_table(delays, 0.05),
            "bursts": burst_table(delays),
            "not promised": not_promised(promise),
        },
    }


def page_with_figures(name: str, text: str) -> str:
    """The page's text with every figure in its place."""
    for mark, generated in pages()[name].items():
        text = put(text, mark, generated)
    return text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
    for page in pages():
        path = GUIDE / page
        path.write_text(page_with_figures(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    from autopilot_pictures import draw_all

    draw_all(delays_of(load(RESULTS).get("delays", {}), 0.0), delays_of(load(RESULTS).get("delays", {}), 0.05))
