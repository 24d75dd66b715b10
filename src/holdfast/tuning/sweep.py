"""One function on every setting, stream and restart, on all cores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from holdfast.checks import require_whole
from holdfast.datasets import Stream
from holdfast.errors import BadInputError, HoldfastError, HoldfastWarning
from holdfast.threads import cores
from holdfast.tuning.reading import as_list, as_value, check_function, shown

Item = TypeVar("Item")
FloatArray = npt.NDArray[np.float64]


class CannotRunError(HoldfastError):
    """Raised by what a sweep evaluates, to say that a setting cannot be run at all."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of it: values (settings, streams, restarts, …), NaN for settings that cannot run, and why not."""

    settings: Sequence[Any]
    values: FloatArray
    cannot_run: dict[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.values.shape))
        return f"Sweep({shape} values, {len(self.cannot_run)} settings cannot run)"


def sweep(
    settings: Iterable[Any],
    streams: Iterable[Item],
    evaluate: Callable[[Any, Item, int], npt.ArrayLike],
    *,
    restarts: int = 1,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Evaluates every setting on every stream, `restarts` times.

    The work is shared by threads, which learners and detectors let run side by side: nothing is copied or pickled, and
    it works as well in a notebook. Each evaluation stands alone and lands in its own place, so that the result is the
    same, to the last bit, for any number of workers. Warnings about the data (`HoldfastWarning`) are silent
    meanwhile: a grid is there to try settings that do not fit.

    Parameters
    ----------
    settings, streams : lists, or anything to go through once
        Of anything that `evaluate` understands.
    evaluate : function (setting, stream, restart) → number or array
        The restart, 0, 1, …, may serve as a seed. All arrays must have one shape. To raise `CannotRunError` rules the
        setting out; any other error ends the sweep, with a note of the setting and the stream it came from.
    restarts : int
        How often each is evaluated.
    workers : int, optional
        Threads; by default as many as there are cores for this process.
    progress : function (done, total), optional
        Called after each evaluation, from this thread.

    Examples
    --------
    >>> sweep([2.0, 3.0], [10.0, 20.0], lambda setting, stream, restart: setting * stream).values[:, :, 0]
    array([[20., 40.],
           [30., 60.]])
    """
    settings, streams = as_list("settings", settings), as_list("streams", streams)
    check_function("evaluate", evaluate, "(setting, stream, restart) → number")
    if progress is not None:
        check_function("progress", progress, "(done, total)")
    restarts = require_whole("restarts", restarts, 1)
    threads = cores() if workers is None else require_whole("workers", workers, 1)
    tasks = list(product(range(len(settings)), range(len(streams)), range(restarts)))
    results: list[FloatArray | None] = []
    cannot_run: dict[int, str] = {}
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore", HoldfastWarning)
        waiting: list[Future[npt.ArrayLike]] = [pool.submit(evaluate, settings[s], streams[i], r) for s, i, r in tasks]
        try:
            for done, ((s, i, r), future) in enumerate(zip(tasks, waiting, strict=True), start=1):
                try:
                    results.append(as_value(future.result()))
                except CannotRunError as error:
                    results.append(None)
                    cannot_run.setdefault(s, str(error))
                except Exception as error:
                    error.add_note(f"settings[{s}] = {shown(settings[s])}, {named(streams[i], i)}, restart {r}")
                    raise
                if progress is not None:
                    progress(done, len(tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    shape = _common_shape(results)
    filled = [np.full(shape, np.nan) if value is None else value for value in results]
    values = np.array(filled).reshape(len(settings), len(streams), restarts, *shape)
    values[list(cannot_run)] = np.nan
    return Sweep(settings, values, cannot_run)


def named(stream: object, place: int) -> str:
    """A stream by its place and, if it has one, its name.

    >>> named(Stream([1.0, 2.0], name="flow"), 3)
    "streams[3] 'flow'"
    """
    return f"streams[{place}] {stream.name!r}" if isinstance(stream, Stream) else f"streams[{place}]"


def _common_shape(results: Sequence[FloatArray | None]) -> tuple[int, ...]:
    shapes = {value.shape for value in results if value is not None}
    if len(shapes) > 1:
        raise BadInputError(f"expected one shape from every evaluation, got {sorted(shapes)}")
    return shapes.pop() if shapes else ()
