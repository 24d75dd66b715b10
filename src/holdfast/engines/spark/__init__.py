"""The same models on Spark: batches, and streams with Spark's own state, checkpoints and exactly-once."""

from holdfast.engines.spark.moving import export_fleet, repartition
from holdfast.engines.spark.scoring import fit, score
from holdfast.engines.spark.session import session

__all__ = ["export_fleet", "fit", "repartition", "score", "session"]
