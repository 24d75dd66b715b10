"""The same models on Spark: batches, and streams with Spark's own state, checkpoints and exactly-once."""

from holdfast.engines.spark.moving import export, rebucket
from holdfast.engines.spark.scoring import learn, score
from holdfast.engines.spark.session import session

__all__ = ["export", "learn", "rebucket", "score", "session"]
