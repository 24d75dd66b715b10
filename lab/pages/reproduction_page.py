"""Writes the figures of docs/guide/reproduction.md from lab/results/reproduction.json.

After `limpet reproduce --out DIR`: python lab/pages/reproduction_page.py DIR
takes results.json and two pictures from there; without DIR it writes the page anew from what it took before.
"""

import json
import sys
from base64 import b64decode
from pathlib import Path

from marked import put

from limpet_lab.paper._compare import (
    AUTO_HEADING,
    CELL_HEADING,
    auto_cell_row,
    auto_tally,
    cell_row,
    describe_auto,
    describe_comparison,
    format_cell,
    remark,
    rivals_ahead,
)
from limpet_lab.paper._results import part_path, parts_folder
from limpet_lab.paper.config import TRIALS, Plan
from limpet_lab.paper.runner import NAMES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results" / "reproduction.json"
PAGE = ROOT / "docs" / "guide" / "reproduction.md"
PICTURES = {"reproduction-illustration.png": ("illustration", 0), "reproduction-tuning.png": ("auc_anomaly", 0)}
TABLES = (
    "auc_univariate",
    "auc_multivariate",
    "auc_multivariate_notebook",
    "auc_well_log",
    "auc_skab",
    "auc_anomaly",
)


def take(folder: Path) -> None:
    """Copies the results and the pictures that the page shows; of a whole run only."""
    text = (folder / "results.json").read_text(encoding="utf-8")
    results = json.loads(text)
    if results["plan"] != Plan(TRIALS).as_dict() or set(results["seconds"]) != set(NAMES):
        sys.exit(f"{folder} is no whole run: the page shows every result, with {TRIALS} trials")
    RESULTS.write_text(text, encoding="utf-8")
    for name, (part, position) in PICTURES.items():
        record = json.loads(part_path(parts_folder(folder, Plan(TRIALS)), part).read_text(encoding="utf-8"))
        pictures = [each["picture"] for each in record["parts"] if "picture" in each]
        (ROOT / "docs" / "pictures" / name).write_bytes(b64decode(pictures[position]["png"]))


def overview(results: dict) -> str:
    """Every cell of SRA that is held against the paper's."""
    lines = [f"| SRA’s cell | verdict | {' | '.join(CELL_HEADING)} |", "|---|---|" + "---:|" * len(CELL_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {remark(record)} | {' | '.join(cell_row(record))} |"
        for record in results["against_paper"]
    ]
    return "\n".join(lines) + "\n"


def untuned(results: dict) -> str:
    """Every cell of SRA-auto, beside the paper's SRA and ours; and the tally."""
    records = results["auto_against_paper"]
    lines = [f"| SRA-auto’s cell | verdict | {' | '.join(AUTO_HEADING)} |", "|---|---|" + "---:|" * len(AUTO_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {remark(record)} | {' | '.join(auto_cell_row(record))} |"
        for record in records
    ]
    return "\n".join(lines) + f"\n\n{auto_tally(records)}\n"


def table(results: dict, key: str) -> str:
    """A table of ours, and in words how it compares with the paper's and with the rivals."""
    cells = {name: row for name, row in results[key].items() if name != "metrics"}
    metrics = results[key]["metrics"]
    lines = ["| | " + " | ".join(metrics) + " |", "|---|" + "---:|" * len(metrics)]
    lines += [f"| {name} | " + " | ".join(map(format_cell, row)) + " |" for name, row in cells.items()]
    records = [record for record in results["against_paper"] if record["table"] == key]
    auto = describe_auto(metrics, cells, [record for record in results["auto_against_paper"] if record["table"] == key])
    return "\n".join(lines) + f"\n\n{describe_comparison(records)}\n{auto}\n{rivals_ahead(metrics, cells)}\n"


def errors(results: dict) -> str:
    """The mean squared errors, all variants."""
    lines = ["| | S_bc | S_ac | S_tot |", "|---|---:|---:|---:|"]
    for key in ("mse_univariate", "mse_multivariate", "mse_multivariate_notebook"):
        for kind in ("abrupt", "gradual"):
            for name, row in results[key][kind].items():
                lines.append(
                    f"| {key.removeprefix('mse_')}, {kind}: {name} | " + " | ".join(map(format_cell, row)) + " |"
                )
    return "\n".join(lines) + "\n"


def seconds(results: dict) -> str:
    """How long it took."""
    total = sum(record["elapsed"] for record in results["seconds"].values())
    grid = results["seconds"]["appendix_b_auc_of_sra"]["whole grid"]
    return (
        f"The run shown here took {total:.0f} s on two cores of a shared server, Appendix B’s grid of 60 settings × "
        f"{len(results['seeds']['streams'])} streams {grid['abrupt']:.1f} s (abrupt) and {grid['gradual']:.1f} s "
        "(gradual).\n"
    )


def page_with_figures(text: str) -> str:
    """The page's text with every figure in its place."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = put(text, "overview", overview(results))
    text = put(text, "untuned", untuned(results))
    text = put(text, "errors", errors(results))
    text = put(text, "seconds", seconds(results))
    for key in TABLES:
        text = put(text, key, table(results, key))
    return text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
