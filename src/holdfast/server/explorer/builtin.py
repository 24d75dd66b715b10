"""Streams to begin with: those of the paper, and a few in which it is plain to see what happens."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.datasets import Stream, load_well_log, make_abrupt, make_gradual
from holdfast.errors import HoldfastError
from holdfast.server.errors import Refused
from holdfast.server.explorer.looked_at import LookedAt

PREFIX = "builtin:"


def levels() -> Stream:
    """A level that jumps three times, with outliers."""
    rng = np.random.default_rng(3)
    means = np.repeat([20.0, 23.0, 21.0, 26.0], 1500)
    y = means + rng.normal(0.0, 0.6, 6000)
    outliers = rng.random(6000) < 0.01
    y[outliers] = rng.uniform(0.0, 60.0, outliers.sum())
    return Stream(y, means.reshape(-1, 1, 1), outliers, change_points=[1500, 3000, 4500], name="levels")


def burst() -> Stream:
    """Forty wild points in a row, and later a real shift."""
    rng = np.random.default_rng(4)
    means = np.repeat([5.0, 6.5], [3500, 2500])
    y = means + rng.normal(0.0, 0.4, 6000)
    outliers = np.zeros(6000, bool)
    outliers[1800:1840] = True
    y[outliers] = rng.uniform(-20.0, 30.0, 40)
    return Stream(y, means.reshape(-1, 1, 1), outliers, change_points=[3500], name="burst")


def one_of_two() -> Stream:
    """Two variables that go together; only the second one moves."""
    rng = np.random.default_rng(6)
    means = np.full((5000, 1, 2), [40.0, 3.0])
    means[2600:, 0, 1] += 0.35
    noise = rng.normal(size=(5000, 2)) @ [[2.0, 0.1], [0.0, 0.17]]
    outliers = rng.random(5000) < 0.006
    y = np.where(outliers[:, None], [40.0, 3.0] + rng.uniform(-1.0, 1.0, (5000, 2)) * [40.0, 4.0], means[:, 0] + noise)
    return Stream(y, means, outliers, change_points=[2600], name="one of two")


def season() -> Stream:
    """A day of 144 rows that comes again and again, one odd hour, and a lasting rise."""
    rng = np.random.default_rng(7)
    t = np.arange(6048)
    y = 12.0 + 4.0 * np.sin(2 * np.pi * t / 144) + 1.5 * np.sin(4 * np.pi * t / 144) + rng.normal(0.0, 0.5, 6048)
    y[2500:2506] += 6.0
    y[4300:] += 1.5
    return Stream(y, change_points=[4300], name="season")


@dataclass(frozen=True)
class Builtin:
    """A stream that is always there. make: makes it; call: how Python calls that, for functions of `hf.datasets`."""

    title: str
    told: str
    make: Callable[[], Stream]
    call: str | None = None
    names: tuple[str, ...] = ()
    n_components: int = 1
    season: int = 0


BUILTIN = {
    "levels": Builtin(
        "Level shifts", "One variable whose level jumps three times, with one outlier in a hundred.", levels
    ),
    "burst": Builtin("A burst, then a shift", "Forty wild points in a row; the level really moves later.", burst),
    "one-of-two": Builtin(
        "One of two moves", "Flow and pressure; only the pressure moves.", one_of_two, names=("flow", "pressure")
    ),
    "season": Builtin("A season", "A day of 144 rows, one odd hour, and a lasting rise.", season, season=144),
    "abrupt": Builtin(
        "Abrupt change, 1-d",
        "The paper's: two components that jump apart.",
        make_abrupt,
        "make_abrupt()",
        n_components=2,
    ),
    "gradual": Builtin(
        "Gradual change, 1-d", "The paper's: two that drift apart.", make_gradual, "make_gradual()", n_components=2
    ),
    "abrupt-3d": Builtin(
        "Abrupt change, 3-d",
        "The paper's in three variables.",
        lambda: make_abrupt(dim=3),
        "make_abrupt(dim=3)",
        n_components=2,
    ),
    "gradual-3d": Builtin(
        "Gradual change, 3-d",
        "The paper's in three variables.",
        lambda: make_gradual(dim=3),
        "make_gradual(dim=3)",
        n_components=2,
    ),
    "well-log": Builtin(
        "Well-log",
        "Magnetic measurements down a borehole: real jumps, real outliers.",
        load_well_log,
        "load_well_log()",
    ),
}


def names() -> list[str]:
    """Those that are there now: the borehole only if its file is, for listing downloads nothing."""
    return [name for name in BUILTIN if name != "well-log" or _has_well_log()]


def listed() -> list[dict[str, Any]]:
    """All of them, in words."""
    found = ((name, load(name)) for name in names())
    return [
        {
            "id": PREFIX + name,
            "name": name,
            "title": BUILTIN[name].title,
            "told": BUILTIN[name].told,
            "rows": len(stream.values),
            "variables": stream.names,
            "suggested": stream.suggested,
        }
        for name, stream in found
    ]


def load(name: str) -> LookedAt:
    """The stream of this name."""
    if name not in BUILTIN or (name == "well-log" and not _has_well_log()):
        raise Refused("unknown_data", f"there is no built-in stream {name!r}; there are {', '.join(names())}")
    return _load(name)


@lru_cache(maxsize=len(BUILTIN))
def _load(name: str) -> LookedAt:
    one = BUILTIN[name]
    stream = one.make()
    width = stream.y.shape[1]
    variables = one.names or tuple("value" if width == 1 else f"x{i + 1}" for i in range(width))
    changes = stream.change_points
    return LookedAt(
        name,
        variables,
        stream.y,
        means=stream.means,
        change_points=changes if isinstance(changes, list) else changes[1],
        told={"title": one.title, "sentence": one.told, "columns": variables},
        suggested={"n_components": one.n_components, "season": one.season},
        lines=_lines(one),
    )


def _lines(one: Builtin) -> str:
    """Python that makes the stream: a call of `hf.datasets`, or the function above as it stands."""
    if one.call:
        return f"import holdfast as hf\n\nstream = hf.datasets.{one.call}\n"
    made = inspect.getsource(one.make).rstrip()
    imports = "import holdfast as hf\nimport numpy as np\nfrom holdfast.datasets import Stream\n"
    return f"{imports}\n\n{made}\n\n\nstream = {one.make.__name__}()\n"


def _has_well_log() -> bool:
    from holdfast.datasets import fetching

    folder = os.environ.get(fetching.VARIABLE)
    try:
        place = Path(folder).expanduser() if folder else fetching.cache_folder()
    except HoldfastError:
        return False
    return (place / "well_log" / "well.txt").is_file()
