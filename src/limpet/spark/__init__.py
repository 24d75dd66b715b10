"""The same models on Spark: batches, and streams with Spark's own state, checkpoints and exactly-once."""

from limpet.spark.migrate import export_fleet, repartition
from limpet.spark.score import fit, score
from limpet.spark.session import session

__all__ = ["export_fleet", "fit", "repartition", "score", "session"]
