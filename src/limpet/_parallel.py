"""Run work on all cores, in threads, since kernels release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

ItemT = TypeVar("ItemT")
_max_threads: int | None = None


def set_max_threads(n: int) -> None:
    """Limit the number of threads, for one of several processes on a machine."""
    global _max_threads
    _max_threads = n


def n_threads() -> int:
    """Return the number of cores that this process may use."""
    n_available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_available if _max_threads is None else min(n_available, _max_threads)


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    """Return the thread pool of a process; a forked process needs a new one."""
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="limpet")


def parallel_for(function: Callable[[ItemT], object], parts: Iterable[ItemT]) -> None:
    """Call a function on every part, the first one in this thread."""
    first, *remaining = parts
    futures = [_pool(os.getpid()).submit(function, part) for part in remaining]
    try:
        function(first)
    finally:
        for future in futures:
            future.result()
