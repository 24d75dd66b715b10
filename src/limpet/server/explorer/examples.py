"""Example streams: those of the paper, and some with clear outliers and changes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from limpet.datasets import Stream, load_well_log, make_abrupt, make_gradual
from limpet.exceptions import LimpetError
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.responses import ApiError

EXAMPLE_ID_PREFIX = "builtin:"


def levels() -> Stream:
    """Make a level that jumps three times, with outliers."""
    rng = np.random.default_rng(3)
    means = np.repeat([20.0, 23.0, 21.0, 26.0], 1500)
    y = means + rng.normal(0.0, 0.6, 6000)
    outliers = rng.random(6000) < 0.01
    y[outliers] = rng.uniform(0.0, 60.0, outliers.sum())
    return Stream(y, means.reshape(-1, 1, 1), outliers, change_points=[1500, 3000, 4500], name="levels")


def burst() -> Stream:
    """Make a burst of forty outliers, and later a real shift."""
    rng = np.random.default_rng(4)
    means = np.repeat([5.0, 6.5], [3500, 2500])
    y = means + rng.normal(0.0, 0.4, 6000)
    outliers = np.zeros(6000, bool)
    outliers[1800:1840] = True
    y[outliers] = rng.uniform(-20.0, 30.0, 40)
    return Stream(y, means.reshape(-1, 1, 1), outliers, change_points=[3500], name="burst")


def correlated_pair() -> Stream:
    """Make two correlated variables, of which only the second one shifts."""
    rng = np.random.default_rng(6)
    means = np.full((5000, 1, 2), [40.0, 3.0])
    means[2600:, 0, 1] += 0.35
    noise = rng.normal(size=(5000, 2)) @ [[2.0, 0.1], [0.0, 0.17]]
    outliers = rng.random(5000) < 0.006
    y = np.where(outliers[:, None], [40.0, 3.0] + rng.uniform(-1.0, 1.0, (5000, 2)) * [40.0, 4.0], means[:, 0] + noise)
    return Stream(y, means, outliers, change_points=[2600], name="correlated pair")


def season() -> Stream:
    """Make a season of 144 rows with an unusual hour and a lasting rise."""
    rng = np.random.default_rng(7)
    t = np.arange(6048)
    y = 12.0 + 4.0 * np.sin(2 * np.pi * t / 144) + 1.5 * np.sin(4 * np.pi * t / 144) + rng.normal(0.0, 0.5, 6048)
    y[2500:2506] += 6.0
    y[4300:] += 1.5
    return Stream(y, change_points=[4300], name="season")


@dataclass(frozen=True)
class ExampleStream:
    """A built-in stream: its function, and its call of `lp.datasets`, if any."""

    title: str
    description: str
    make: Callable[[], Stream]
    dataset_call: str | None = None
    names: tuple[str, ...] = ()
    n_components: int = 1
    season: int = 0


_paper_example = partial(ExampleStream, n_components=2)
EXAMPLE_STREAMS = {
    "levels": ExampleStream("Level shifts", "One variable whose level jumps three times; 1 % outliers.", levels),
    "burst": ExampleStream("A burst, then a shift", "Forty outliers in sequence; the level shifts later.", burst),
    "correlated-pair": ExampleStream(
        "Correlated pair", "Flow and pressure; only the pressure shifts.", correlated_pair, names=("flow", "pressure")
    ),
    "season": ExampleStream(
        "A season", "A season of 144 rows, an unusual hour, and a lasting rise.", season, season=144
    ),
    "abrupt": _paper_example(
        "Abrupt change, 1-d", "From the paper: two components that jump apart.", make_abrupt, "make_abrupt()"
    ),
    "gradual": _paper_example(
        "Gradual change, 1-d", "From the paper: two components that drift apart.", make_gradual, "make_gradual()"
    ),
    "abrupt-3d": _paper_example(
        "Abrupt change, 3-d", "From the paper, in three variables.", partial(make_abrupt, dim=3), "make_abrupt(dim=3)"
    ),
    "gradual-3d": _paper_example(
        "Gradual change, 3-d",
        "From the paper, in three variables.",
        partial(make_gradual, dim=3),
        "make_gradual(dim=3)",
    ),
    "well-log": ExampleStream(
        "Well-log", "Magnetic measurements in a borehole: real jumps, real outliers.", load_well_log, "load_well_log()"
    ),
}


def list_names() -> list[str]:
    """Return the names of available streams; the well-log only if its file exists."""
    return [name for name in EXAMPLE_STREAMS if name != "well-log" or _has_well_log()]


def list_examples() -> list[dict[str, Any]]:
    """Return the descriptions of the available streams."""
    return [
        {
            "id": EXAMPLE_ID_PREFIX + stream.name,
            "name": stream.name,
            "title": stream.metadata["title"],
            "description": stream.metadata["description"],
            "rows": len(stream.values),
            "variables": stream.names,
            "suggested": stream.suggested,
        }
        for stream in map(_load, list_names())
    ]


def load(name: str) -> ExplorerDataset:
    """Return the stream with this name."""
    if name not in (names := list_names()):
        raise ApiError("unknown_data", f"data: must be one of {', '.join(names)}, got {name!r}.")
    return _load(name)


@lru_cache(maxsize=len(EXAMPLE_STREAMS))
def _load(name: str) -> ExplorerDataset:
    example = EXAMPLE_STREAMS[name]
    stream = example.make()
    width = stream.y.shape[1]
    variables = example.names or tuple("value" if width == 1 else f"x{i + 1}" for i in range(width))
    change_points = stream.change_points
    return ExplorerDataset(
        name,
        variables,
        stream.y,
        means=stream.means,
        change_points=change_points if isinstance(change_points, list) else change_points[1],
        metadata={"title": example.title, "description": example.description, "columns": variables},
        suggested={"n_components": example.n_components, "season": example.season},
        source_code=_source_code(example),
    )


def _source_code(example: ExampleStream) -> str:
    """Return Python code of the stream: a call of `lp.datasets`, or its function."""
    if example.dataset_call:
        return f"import limpet as lp\n\nstream = lp.datasets.{example.dataset_call}\n"
    function_source = inspect.getsource(example.make).rstrip()
    imports = "import limpet as lp\nimport numpy as np\nfrom limpet.datasets import Stream\n"
    return f"{imports}\n\n{function_source}\n\n\nstream = {example.make.__name__}()\n"


def _has_well_log() -> bool:
    from limpet.datasets import _fetch

    folder = os.environ.get(_fetch.DATA_FOLDER_VARIABLE)
    try:
        directory = Path(folder).expanduser() if folder else _fetch.get_cache_folder()
    except LimpetError:
        return False
    return (directory / "well_log" / "well.txt").is_file()
