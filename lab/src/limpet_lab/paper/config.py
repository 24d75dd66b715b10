"""How much is run: streams, restarts, seeds, workers."""

from __future__ import annotations

from dataclasses import dataclass

from limpet._validation import check_int

N_TRIALS, N_QUICK_TRIALS = 10, 1
MIN_TRIALS_FOR_VERDICT = 5  # with fewer trials no cell is held against the paper's
FIRST_HELD_OUT_SEED = 1000  # the first of the seeds that only choose a setting and are never scored


@dataclass(frozen=True)
class Plan:
    """trials: synthetic streams of each kind, and restarts on real data (half as many on SKAB, as in the paper)."""

    trials: int = N_TRIALS
    quick: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        check_int("trials", self.trials, 1)

    @property
    def seeds(self) -> list[int]:
        """Seeds of the streams that are scored.

        >>> Plan(trials=3).seeds, Plan(trials=3).held_out_seeds
        ([0, 1, 2], [1000, 1001, 1002])
        """
        return list(range(self.trials))

    @property
    def held_out_seeds(self) -> list[int]:
        """Seeds of the streams that SRA-heldout is tuned on."""
        return [FIRST_HELD_OUT_SEED + seed for seed in self.seeds]

    @property
    def restarts(self) -> int:
        """Restarts on Well-log, SMTP and THYROID."""
        return self.trials

    @property
    def restarts_on_skab(self) -> int:
        """Restarts on SKAB, half as many, as in the paper: 5 for 10."""
        return (self.trials + 1) // 2

    @property
    def is_quick_run(self) -> bool:
        """Whether the run is too small for a comparison with the paper."""
        return self.quick or self.trials < MIN_TRIALS_FOR_VERDICT

    @property
    def name(self) -> str:
        """Name of the folder of its results.

        >>> Plan().name, Plan(trials=1, quick=True).name
        ('trials-10', 'trials-1-quick')
        """
        return f"trials-{self.trials}" + ("-quick" if self.quick else "")

    def to_dict(self) -> dict[str, object]:
        """Return what determines the figures; the number of workers does not."""
        return {"trials": self.trials, "quick": self.quick}
