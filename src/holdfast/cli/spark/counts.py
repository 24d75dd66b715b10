"""What became of the rows: counted by Spark while it writes them."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNTED_FLAGS = ("rejected", "invalid", "late")


@dataclass
class RowCounts:
    """Of a batch, or of all."""

    rows: int = 0
    dropped: int = 0
    bad: int = 0
    late: int = 0
    alarms: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, metrics: Any) -> None:
        """What Spark has observed; of no rows it knows no sum."""
        values = metrics if isinstance(metrics, dict) else metrics.asDict()
        for name in self.to_dict():
            setattr(self, name, getattr(self, name) + int(values.get(name) or 0))

    def to_dict(self) -> dict[str, int]:
        """The numbers."""
        return {name: value for name, value in asdict(self).items() if name != "began"}

    @property
    def summary(self) -> str:
        """In words."""
        rest = ", ".join(f"{value:,} {name}" for name, value in self.to_dict().items() if name != "rows")
        return f"{self.rows:,} rows: {rest}"


def observe_counts(scored: DataFrame, prefix: str, name: Any) -> DataFrame:
    """The same rows, which Spark counts on their way."""
    from pyspark.sql import functions as F

    flags = [flag for flag in COUNTED_FLAGS if prefix + flag in scored.columns]
    sums = [F.sum(F.col(f"`{prefix}{flag}`").cast("long")).alias(flag) for flag in flags]
    alarms = F.sum(F.coalesce(F.size(F.col(f"`{prefix}alarms`")), F.lit(0)).cast("long")).alias("alarms")
    return scored.observe(name, F.count(F.lit(1)).alias("rows"), *sums, alarms)
