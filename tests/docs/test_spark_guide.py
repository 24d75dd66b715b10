"""The code of the guide runs, with the output on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import limpet as lp

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
PAGE, HOW_TO = DOCS / "guide" / "spark.md", DOCS / "how-to" / "spark.md"
FILES = ("january", "incoming", "results", "state")


def test_the_guide_runs(spark, tmp_path, capfd) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(block for block in blocks if not block.startswith("# needs a broker"))
    for name in FILES:  # Spark's own working folder is where its Java was started
        code = code.replace(f'"{name}', f'"{tmp_path}/{name}')
    known: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), known)
    output = capfd.readouterr().out
    shown = re.findall(r"^    (\|pump .*\|)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == 2
    assert all(line in output for line in shown)
    results = pq.read_table(tmp_path / "results")
    assert len(results) == 1500
    fleet = known["fleet"]
    assert isinstance(fleet, lp.Fleet)
    assert fleet["pump"].means.round(1) == [[4.0]]
    assert sorted((tmp_path / "state" / "limpet").glob("generation-*.json"))[-1].name == "generation-0002.json"


def test_the_recipe_runs(spark, capfd) -> None:
    """The Python of how-to/spark.md."""
    (code,) = re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(HOW_TO), "exec"), {})
    assert "change since row" in capfd.readouterr().out
