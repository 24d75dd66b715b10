"""Work shared by the cores: threads, because compiled functions let go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

ItemT = TypeVar("ItemT")


_max_threads: int | None = None


def set_max_threads(n: int) -> None:
    """For a process that is one of several on the machine: on how many cores it may work."""
    global _max_threads
    _max_threads = n


def n_threads() -> int:
    """The cores that this process may use."""
    n_available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_available if _max_threads is None else min(n_available, _max_threads)


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    """One for each process: a fork does not take threads along."""
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="limpet")


def parallel_for(function: Callable[[ItemT], object], parts: Iterable[ItemT]) -> None:
    """Does the work on every part, on as many cores as there are; the first one here."""
    first, *remaining = parts
    futures = [_pool(os.getpid()).submit(function, part) for part in remaining]
    try:
        function(first)
    finally:
        for future in futures:
            future.result()
