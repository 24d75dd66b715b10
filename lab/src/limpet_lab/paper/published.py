"""The numbers of the paper's tables, each [mean, standard deviation], as arXiv:2007.12160 prints them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load_paper_tables() -> dict[str, Any]:
    """Return every table by its key.

    >>> load_paper_tables()["auc_univariate"]["SRA"]
    [[0.717, 0.021], [0.702, 0.023]]
    """
    tables: dict[str, Any] = json.loads((Path(__file__).parent / "paper_tables.json").read_text(encoding="utf-8"))
    return tables


def get_paper_cells(table: str, *part: str) -> dict[str, list[list[float]]]:
    """Return the cells of a table, by method; `*_notebook` has the same printed table.

    >>> get_paper_cells("mse_multivariate_notebook", "abrupt")["SRA"][0]
    [0.026, 0.002]
    """
    node: dict[str, Any] = load_paper_tables()[table.removesuffix("_notebook")]
    for key in part:
        node = node[key]
    return {method: cells for method, cells in node.items() if method != "metrics" and isinstance(cells, list)}
