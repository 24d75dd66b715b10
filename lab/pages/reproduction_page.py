"""Write the figures of docs/guide/reproduction.md from lab/results/reproduction.json.

After `limpet reproduce --out DIR`, run `python lab/pages/reproduction_page.py DIR`, which takes
the quoted figures and two pictures from DIR. Without DIR the summary present is used.
"""

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

from page_tools import RESULTS, ROOT, dump, put, rounded

from limpet_lab.paper._compare import (
    AUTO_HEADING,
    CELL_HEADING,
    auto_cell_row,
    auto_tally,
    baselines_ahead,
    cell_row,
    describe_auto,
    describe_comparison,
    format_cell,
    remark,
)
from limpet_lab.paper._results import part_path, parts_folder
from limpet_lab.paper.config import TRIALS, Plan
from limpet_lab.paper.runner import NAMES

SUMMARY = RESULTS / "reproduction.json"
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
ERRORS = ("mse_univariate", "mse_multivariate", "mse_multivariate_notebook")


def take(folder: Path) -> None:
    """Summarize the results of a whole run, and copy the pictures that the page shows."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    if results["plan"] != Plan(TRIALS).as_dict() or set(results["seconds"]) != set(NAMES):
        sys.exit(f"{folder}: must hold a whole run, got one with other trials or results. Run limpet reproduce.")
    write_summary(results)
    for name, (part, position) in PICTURES.items():
        record = json.loads(part_path(parts_folder(folder, Plan(TRIALS)), part).read_text(encoding="utf-8"))
        pictures = [each["picture"] for each in record["parts"] if "picture" in each]
        (ROOT / "docs" / "pictures" / name).write_bytes(b64decode(pictures[position]["png"]))


def write_summary(results: dict[str, Any]) -> None:
    """Write what the page quotes, a table per line."""
    summary = {key: shortened(results[key]) for key in (*TABLES, *ERRORS, "against_paper", "auto_against_paper")}
    summary["seconds"] = {
        "all": round(sum(record["elapsed"] for record in results["seconds"].values())),
        "grid of appendix B": shortened(results["seconds"]["appendix_b_auc_of_sra"]["whole grid"]),
    }
    summary["streams"] = len(results["seeds"]["streams"])
    lines = ",\n".join(f"{dump(key)}: {dump(value)}" for key, value in summary.items())
    SUMMARY.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def shortened(value: Any) -> Any:
    """Round every number of a table."""
    if isinstance(value, dict):
        return {key: shortened(below) for key, below in value.items()}
    if isinstance(value, list):
        return [shortened(below) for below in value]
    return rounded(value) if isinstance(value, float) else value


def overview(results: dict) -> str:
    """Return every cell of SRA that is compared with the paper's."""
    lines = [f"| SRA’s cell | verdict | {' | '.join(CELL_HEADING)} |", "|---|---|" + "---:|" * len(CELL_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {remark(record)} | {' | '.join(cell_row(record))} |"
        for record in results["against_paper"]
    ]
    return "\n".join(lines) + "\n"


def untuned(results: dict) -> str:
    """Return every cell of Detector, compared with the paper's SRA and ours; and the tally."""
    records = results["auto_against_paper"]
    lines = [f"| Detector’s cell | verdict | {' | '.join(AUTO_HEADING)} |", "|---|---|" + "---:|" * len(AUTO_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {remark(record)} | {' | '.join(auto_cell_row(record))} |"
        for record in records
    ]
    return "\n".join(lines) + f"\n\n{auto_tally(records)}\n"


def table(results: dict, key: str) -> str:
    """Return one of our tables, and describe how it compares with the paper's and with the baselines."""
    cells = {name: row for name, row in results[key].items() if name != "metrics"}
    metrics = results[key]["metrics"]
    lines = ["| | " + " | ".join(metrics) + " |", "|---|" + "---:|" * len(metrics)]
    lines += [f"| {name} | " + " | ".join(map(format_cell, row)) + " |" for name, row in cells.items()]
    records = [record for record in results["against_paper"] if record["table"] == key]
    auto = describe_auto(metrics, cells, [record for record in results["auto_against_paper"] if record["table"] == key])
    return "\n".join(lines) + f"\n\n{describe_comparison(records)}\n{auto}\n{baselines_ahead(metrics, cells)}\n"


def errors(results: dict) -> str:
    """Return the mean squared errors, all variants."""
    lines = ["| | S_bc | S_ac | S_tot |", "|---|---:|---:|---:|"]
    for key in ERRORS:
        for kind in ("abrupt", "gradual"):
            for name, row in results[key][kind].items():
                lines.append(
                    f"| {key.removeprefix('mse_')}, {kind}: {name} | " + " | ".join(map(format_cell, row)) + " |"
                )
    return "\n".join(lines) + "\n"


def seconds(results: dict) -> str:
    """Return how long the run took."""
    total, grid = (results["seconds"][name] for name in ("all", "grid of appendix B"))
    return (
        f"The run shown here took {total} s on two cores of a shared server, Appendix B’s grid of 60 "
        f"settings × {results['streams']} streams {grid['abrupt']:.1f} s (abrupt) and {grid['gradual']:.1f} s "
        "(gradual).\n"
    )


def page_with_figures(text: str) -> str:
    """Insert every figure into the text of the page."""
    results = json.loads(SUMMARY.read_text(encoding="utf-8"))
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
