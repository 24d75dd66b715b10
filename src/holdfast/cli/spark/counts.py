"""What became of the rows: counted by Spark while it writes them."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLAGS = ("dropped", "bad", "late")


@dataclass
class Counts:
    """Of a batch, or of all."""

    rows: int = 0
    dropped: int = 0
    bad: int = 0
    late: int = 0
    alarms: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, found: Any) -> None:
        """What Spark has observed; of no rows it knows no sum."""
        told = found if isinstance(found, dict) else found.asDict()
        for name in self.as_dict():
            setattr(self, name, getattr(self, name) + int(told.get(name) or 0))

    def as_dict(self) -> dict[str, int]:
        """The numbers."""
        return {name: value for name, value in asdict(self).items() if name != "began"}

    @property
    def told(self) -> str:
        """In words."""
        rest = ", ".join(f"{value:,} {name}" for name, value in self.as_dict().items() if name != "rows")
        return f"{self.rows:,} rows: {rest}"


def observed(scored: DataFrame, prefix: str, name: Any) -> DataFrame:
    """The same rows, which Spark counts on their way."""
    from pyspark.sql import functions as F

    flags = [one for one in FLAGS if prefix + one in scored.columns]
    sums = [F.sum(F.col(f"`{prefix}{one}`").cast("long")).alias(one) for one in flags]
    alarms = F.sum(F.coalesce(F.size(F.col(f"`{prefix}alarms`")), F.lit(0)).cast("long")).alias("alarms")
    return scored.observe(name, F.count(F.lit(1)).alias("rows"), *sums, alarms)
