"""Write the figures of docs/guide/reproduction.md from lab/results/reproduction.json.

After `limpet reproduce --out FOLDER`, run `python lab/pages/reproduction_page.py FOLDER`, which takes
the quoted figures and two pictures from FOLDER. Without FOLDER the summary present is used.
"""

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

from page_tools import RESULTS, ROOT, insert_section, round_for_print, to_json

from limpet_lab.paper._compare import (
    AUTO_HEADING,
    CELL_HEADING,
    describe_auto,
    describe_auto_tally,
    describe_baselines_ahead,
    describe_comparison,
    format_cell,
    format_verdict,
    make_auto_cell_row,
    make_cell_row,
)
from limpet_lab.paper._results import get_part_path, get_parts_folder
from limpet_lab.paper.config import N_TRIALS, Plan
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
ERROR_TABLES = ("mse_univariate", "mse_multivariate", "mse_multivariate_notebook")


def import_run(folder: Path) -> None:
    """Summarize the results of a whole run, and copy the pictures that the page shows."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    if results["plan"] != Plan(N_TRIALS).to_dict() or set(results["seconds"]) != set(NAMES):
        sys.exit(f"{folder}: must hold a whole run, got one with other trials or results. Run limpet reproduce.")
    write_summary(results)
    for name, (part, position) in PICTURES.items():
        record = json.loads(get_part_path(get_parts_folder(folder, Plan(N_TRIALS)), part).read_text(encoding="utf-8"))
        pictures = [each["picture"] for each in record["parts"] if "picture" in each]
        (ROOT / "docs" / "pictures" / name).write_bytes(b64decode(pictures[position]["png"]))


def write_summary(results: dict[str, Any]) -> None:
    """Write what the page quotes, a table per line."""
    summary = {
        key: round_values(results[key]) for key in (*TABLES, *ERROR_TABLES, "against_paper", "auto_against_paper")
    }
    summary["seconds"] = {
        "all": round(sum(record["elapsed"] for record in results["seconds"].values())),
        "grid of appendix B": round_values(results["seconds"]["appendix_b_auc_of_sra"]["whole grid"]),
    }
    summary["streams"] = len(results["seeds"]["streams"])
    lines = ",\n".join(f"{to_json(key)}: {to_json(value)}" for key, value in summary.items())
    SUMMARY.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def round_values(value: Any) -> Any:
    """Round every number of a table."""
    if isinstance(value, dict):
        return {key: round_values(below) for key, below in value.items()}
    if isinstance(value, list):
        return [round_values(below) for below in value]
    return round_for_print(value) if isinstance(value, float) else value


def make_overview_table(results: dict) -> str:
    """Return every cell of SRA that is compared with the paper's."""
    lines = [f"| SRA’s cell | verdict | {' | '.join(CELL_HEADING)} |", "|---|---|" + "---:|" * len(CELL_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {format_verdict(record)} | {' | '.join(make_cell_row(record))} |"
        for record in results["against_paper"]
    ]
    return "\n".join(lines) + "\n"


def make_detector_table(results: dict) -> str:
    """Return every cell of Detector, compared with the paper's SRA and ours; and the tally."""
    records = results["auto_against_paper"]
    lines = [f"| Detector’s cell | verdict | {' | '.join(AUTO_HEADING)} |", "|---|---|" + "---:|" * len(AUTO_HEADING)]
    lines += [
        f"| {record['table']}, {record['cell']} | {format_verdict(record)} | {' | '.join(make_auto_cell_row(record))} |"
        for record in records
    ]
    return "\n".join(lines) + f"\n\n{describe_auto_tally(records)}\n"


def make_table(results: dict, key: str) -> str:
    """Return one of our tables, and describe how it compares with the paper's and with the baselines."""
    cells = {name: row for name, row in results[key].items() if name != "metrics"}
    metrics = results[key]["metrics"]
    lines = ["| | " + " | ".join(metrics) + " |", "|---|" + "---:|" * len(metrics)]
    lines += [f"| {name} | " + " | ".join(map(format_cell, row)) + " |" for name, row in cells.items()]
    records = [record for record in results["against_paper"] if record["table"] == key]
    auto = describe_auto(metrics, cells, [record for record in results["auto_against_paper"] if record["table"] == key])
    return (
        "\n".join(lines) + f"\n\n{describe_comparison(records)}\n{auto}\n{describe_baselines_ahead(metrics, cells)}\n"
    )


def make_error_table(results: dict) -> str:
    """Return the mean squared errors, all variants."""
    lines = ["| | S_bc | S_ac | S_tot |", "|---|---:|---:|---:|"]
    for key in ERROR_TABLES:
        for kind in ("abrupt", "gradual"):
            for name, row in results[key][kind].items():
                lines.append(
                    f"| {key.removeprefix('mse_')}, {kind}: {name} | " + " | ".join(map(format_cell, row)) + " |"
                )
    return "\n".join(lines) + "\n"


def describe_seconds(results: dict) -> str:
    """Return how long the run took."""
    total, grid = (results["seconds"][name] for name in ("all", "grid of appendix B"))
    return (
        f"The run shown here took {total} s on two cores of a shared server, Appendix B’s grid of 60 "
        f"settings × {results['streams']} streams {grid['abrupt']:.1f} s (abrupt) and {grid['gradual']:.1f} s "
        "(gradual).\n"
    )


def fill_page(text: str) -> str:
    """Insert every figure into the text of the page."""
    results = json.loads(SUMMARY.read_text(encoding="utf-8"))
    text = insert_section(text, "overview", make_overview_table(results))
    text = insert_section(text, "untuned", make_detector_table(results))
    text = insert_section(text, "errors", make_error_table(results))
    text = insert_section(text, "seconds", describe_seconds(results))
    for key in TABLES:
        text = insert_section(text, key, make_table(results, key))
    return text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import_run(Path(sys.argv[1]))
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
