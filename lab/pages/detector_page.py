"""Write the figures of `docs/guide/detector.md` and `alarms.md` from lab/results, and draw their pictures.

After `limpet bench BENCHMARKS --json FILE`, `python lab/pages/detector_page.py FILE` takes the figures of FILE; without
FILE it writes the pages from the summaries present.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from page_tools import (
    NOT_MEASURED,
    ROOT,
    Figures,
    format_number,
    format_table,
    import_run,
    insert_section,
    load_figures,
)

from limpet_lab.bench._measurement import Figure
from limpet_lab.bench.compact_memory import CHANGE_KINDS, MEMORIES, STREAM_FAMILIES, compute_state_bytes
from limpet_lab.bench.detection_delay import ROWS_AFTER_CHANGE
from limpet_lab.bench.false_alarm_rate import FALSE_ALARM_RATES, FAMILIES, FAMILIES_OUTSIDE_PROMISE, OUTLIER_SHARES

GUIDE = ROOT / "docs" / "guide"
BENCHMARKS = ("false_alarm_rate", "detection_delay", "robustness", "real_streams", "auto_latency", "compact_memory")
RATE_LABELS = {1e-3: "10⁻³", 1e-4: "10⁻⁴", 1e-5: "10⁻⁵"}
OUR_NAME, RATIO_PREFIX = "ours", "ours over "


def find_missed_goals(figures: Iterable[Figure]) -> list[Figure]:
    """Return the figures whose goal was not reached."""
    return [figure for figure in figures if not figure.is_reached]


# The promise


def make_rate_table(figures: Figures, kind: str, early: bool = False) -> str:
    """Return observed over promised rates of one kind of alarm; three shares of outliers in a cell."""
    when = ", rows 200–2000" if early else ""
    rates = [far for far in FALSE_ALARM_RATES if far > 1e-5 or not early]
    rows = [
        [
            name,
            str(d),
            *(
                " / ".join(
                    format_number(figures, f"{kind}, {name}, d={d}, {share:.0%} outliers, far {far:g}{when}")
                    for share in OUTLIER_SHARES
                )
                for far in rates
            ),
        ]
        for d in (1, 3)
        for name in FAMILIES
    ]
    return format_table(["stream", "d", *(f"far = {RATE_LABELS[far]}" for far in rates)], rows, 2)


def describe_rates(figures: Figures) -> str:
    """Describe the cells: how many, the largest, and those that miss the goal."""
    lines = []
    for kind in ("change", "anomaly"):
        cells = [figure for name, figure in figures.items() if name.startswith(f"{kind}, ")]
        if cells:
            worst = max(cells, key=lambda figure: figure.value)
            where = worst.name.removeprefix(f"{kind}, ")
            lines.append(f"- {kind} alarms, {len(cells)} cells: the largest is {worst.value:.2f} ({where}).")
            if find_missed_goals(cells):
                names = "; ".join(
                    f"{c.value:.2f} ({c.name.removeprefix(f'{kind}, ')})" for c in find_missed_goals(cells)
                )
                lines.append(f"  Outside the goal: {names}.")
    return "\n".join(lines) + "\n" if lines else NOT_MEASURED


def make_unpromised_table(figures: Figures) -> str:
    """Return rates outside the promise: by default, without threshold inflation, with the right setting; anomalies."""
    rows = []
    for name in FAMILIES_OUTSIDE_PROMISE:
        for far in FALSE_ALARM_RATES[:2]:
            start = f"not promised: change, {name}, far {far:g}"
            settings = [name.removeprefix(f"{start}, with ") for name in figures if name.startswith(f"{start}, with ")]
            words = f"{format_number(figures, f'{start}, with {settings[0]}')} (`{settings[0]}`)" if settings else ""
            row = [
                format_number(figures, start),
                format_number(figures, f"{start}, without threshold inflation"),
                words,
            ]
            rows.append(
                [name, RATE_LABELS[far], *row, format_number(figures, f"not promised: anomaly, {name}, far {far:g}")]
            )
    return format_table(
        ["stream", "far", "changes", "without threshold inflation", "with the setting", "anomalies"], rows, 2
    )


# Delays and bursts


def get_delays(figures: Figures, share: float) -> dict[str, dict[str, float]]:
    """Return method → kind of change → median delay."""
    delays: dict[str, dict[str, float]] = {}
    for name, figure in figures.items():
        kind, _, rest = name.partition(f", {share:.0%} outliers: ")
        if rest and not rest.startswith(RATIO_PREFIX):
            delays.setdefault(rest, {})[kind] = figure.value
    return delays


def make_delay_table(figures: Figures, share: float) -> str:
    """Return median delays in points, a line per method; none where fewer than half of the changes were detected."""
    delays = get_delays(figures, share)
    kinds = list(dict.fromkeys(kind for row in delays.values() for kind in row))

    def cell(row: dict[str, float], kind: str) -> str:
        return "–" if kind not in row else "none" if row[kind] >= ROWS_AFTER_CHANGE else f"{row[kind]:g}"

    rows = [
        ["**limpet**" if name == OUR_NAME else name, *(cell(row, kind) for kind in kinds)]
        for name, row in delays.items()
    ]
    return format_table(["", *kinds], rows)


def make_burst_table(figures: Figures) -> str:
    """Return how often a burst of outliers raises a change alarm, over the promised rate."""
    sizes = (0, 1, 2, 3, 4, 6, 8)
    rows = [[f"d = {d}", *(format_number(figures, f"burst of {size}, d={d}") for size in sizes)] for d in (1, 3)]
    return format_table(["outliers in a row", *map(str, sizes)], rows)


# Recovery, real streams, cost


def make_recovery_table(figures: Figures) -> str:
    """Return the share of runs that recovered the truth: in all, by the oracle, and in the lowest group."""
    rows = []
    for name, figure in figures.items():
        title, _, runs = name.partition(": of ")
        if runs and figure.unit == "%":
            oracle = f"{title}: oracle"
            groups = {
                other.removeprefix(f"{title}: "): value.value
                for other, value in figures.items()
                if other.startswith(f"{title}: ") and other not in (name, oracle)
            }
            lowest = min(groups, key=lambda group: groups[group]) if groups else ""
            lowest_cell = f"{groups[lowest]:.1f} % ({lowest})" if groups else "–"
            rows.append([title, runs, f"{figure.value:.1f} %", f"{format_number(figures, oracle, 1)} %", lowest_cell])
    return format_table(["change", "runs", "recovered", "oracle", "lowest group"], rows)


def make_movement_table(figures: Figures) -> str:
    """Return how far bursts of outliers move the estimate."""
    rows = [
        [name.removeprefix("bursts, "), f"{figure.value:.3g} {figure.unit}"]
        for name, figure in figures.items()
        if name.startswith("bursts, ")
    ]
    return format_table(["bursts of 1 to 8 outliers", ""], rows)


def make_error_table(figures: Figures) -> str:
    """Return the mean squared errors on the paper's streams."""
    rows = [
        [name, f"{figure.value:.2g}", "" if figure.at_most is None else f"≤ {figure.at_most:g}"]
        for name, figure in figures.items()
        if ": S_" in name
    ]
    return format_table(["stream", "error", "goal"], rows)


def make_real_streams_table(figures: Figures) -> str:
    """Return a line for each measure, a column for each method."""
    measured: dict[str, dict[str, float]] = {}
    for name, figure in figures.items():
        measure, _, method = name.rpartition(": ")
        measured.setdefault(measure, {})[method] = figure.value
    methods = list(dict.fromkeys(method for row in measured.values() for method in row))
    rows = [[measure, *(f"{row[m]:.3g}" if m in row else "–" for m in methods)] for measure, row in measured.items()]
    return format_table(["", *(f"`{m}`" if m == "Detector()" else m for m in methods)], rows)


def make_cost_table(figures: Figures) -> str:
    """Return time per point and bytes of state, by kind of stream."""
    rows = []
    for K in (1, 2):
        for d in (1, 3, 8):
            size = compute_state_bytes("full", K, d)
            times = [format_number(figures, f"{how}, K={K}, d={d}", 0) for how in ("process", "score", "update")]
            rows.append([f"K = {K}, d = {d}", *times, f"{size:,}"])
    adwin = f"\nRiver’s `ADWIN.update` in the same run: {format_number(figures, 'ADWIN.update', 0)} ns per point.\n"
    heading = ["stream", "`process`, ns per point", "`score`, ns per point", "`update`, ns per point", "bytes of state"]
    return format_table(heading, rows) + (adwin if figures else "")


def make_memory_table(figures: Figures) -> str:
    """Compare compact with full memory: bytes, times, delays."""
    rows = []
    for K in (1, 2):
        rows.append([f"bytes per stream, K = {K}", *(f"{compute_state_bytes(memory, K):,}" for memory in MEMORIES)])
        times = [format_number(figures, f"process, {memory}, K={K}", 0) for memory in MEMORIES]
        rows.append([f"`process`, ns per point, K = {K}", *times])
    for share in (0.0, 0.05):
        for kind in CHANGE_KINDS:
            label = f"{kind.name}, {share:.0%} outliers"
            rows.append([f"delay, {label}", *(format_number(figures, f"{label}: {memory}", 0) for memory in MEMORIES)])
    return format_table(["", "full", "compact"], rows)


def make_compact_rate_table(figures: Figures) -> str:
    """Return observed over promised rates of compact memory: clean / 5 % outliers in a cell."""
    rows = []
    for name in STREAM_FAMILIES:
        cells = [
            " / ".join(
                format_number(figures, f"{kind}, {name}, {share:.0%} outliers, far {far:g}") for share in (0.0, 0.05)
            )
            for kind in ("change", "anomaly")
            for far in (1e-3, 1e-4)
        ]
        rows.append([name, *cells])
    heading = [f"{kind}, far {RATE_LABELS[far]}" for kind in ("changes", "anomalies") for far in (1e-3, 1e-4)]
    return format_table(["stream", *heading], rows)


def make_pages() -> dict[str, dict[str, str]]:
    """Return page → mark → what stands there."""
    rates, delays, robustness = (load_figures(name) for name in ("false_alarm_rate", "detection_delay", "robustness"))
    return {
        "detector.md": {
            "recovery": make_recovery_table(robustness),
            "bursts of outliers": make_movement_table(robustness),
            "errors": make_error_table(robustness),
            "real streams": make_real_streams_table(load_figures("real_streams")),
            "cost": make_cost_table(load_figures("auto_latency")),
            "memory": make_memory_table(load_figures("compact_memory")),
            "compact rates": make_compact_rate_table(load_figures("compact_memory")),
        },
        "alarms.md": {
            "verdict": describe_rates(rates),
            "change rates": make_rate_table(rates, "change"),
            "anomaly rates": make_rate_table(rates, "anomaly"),
            "early change rates": make_rate_table(rates, "change", early=True),
            "early anomaly rates": make_rate_table(rates, "anomaly", early=True),
            "delays, clean": make_delay_table(delays, 0.0),
            "delays, outliers": make_delay_table(delays, 0.05),
            "bursts": make_burst_table(delays),
            "not promised": make_unpromised_table(rates),
        },
    }


def fill_page(name: str, text: str) -> str:
    """Insert every figure into the text of a page."""
    for mark, generated in make_pages()[name].items():
        text = insert_section(text, mark, generated)
    return text


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), BENCHMARKS)
    for page in make_pages():
        path = GUIDE / page
        path.write_text(fill_page(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    if sys.argv[1:]:
        from detector_pictures import draw_all

        delays = load_figures("detection_delay")
        draw_all(get_delays(delays, 0.0), get_delays(delays, 0.05))
