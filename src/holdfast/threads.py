"""Work shared by the cores: threads, because compiled functions let go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")


_most: int | None = None


def use_at_most(n: int) -> None:
    """For a process that is one of several on the machine: on how many cores it may work."""
    global _most
    _most = n


def cores() -> int:
    """The cores that this process may use."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return there if _most is None else min(there, _most)


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One for each process: a fork does not take threads along."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="holdfast")


def share(work: Callable[[Item], object], parts: Iterable[Item]) -> None:
    """Does the work on every part, on as many cores as there are; the first one here."""
    first, *others = parts
    waiting = [_pool(os.getpid()).submit(work, part) for part in others]
    try:
        work(first)
    finally:
        for one in waiting:
            one.result()
