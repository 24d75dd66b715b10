"""What a person sees while the results are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class Bar:
    """One progress bar: which result, how many of them, how far this one is. In a log file, lines instead."""

    def __init__(self, console: Console, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[part]}"),
            TimeElapsedColumn(),
        )
        self._console, self._total = console, total
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("starting", total=total, part="")
        self._begun = 0

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        """The next result."""
        self._progress.update(self._task, description=name, completed=self._begun, part="")
        self._begun += 1
        if not self._console.is_terminal:
            self.tell(f"[{self._begun} of {self._total}] {name}")

    def advance(self, done: int, total: int) -> None:
        """How far the result is."""
        completed = self._begun - 1 + done / total
        self._progress.update(self._task, completed=completed, part=f"{done:,} of {total:,} runs")

    def tell(self, words: str, style: str = "") -> None:
        """A line above the bar, which stays."""
        self._console.print(words, markup=False, highlight=False, style=style, soft_wrap=True)
