"""Score DataFrames on Spark, batch and streaming, with the bits of a fleet."""

from limpet.spark.migrate import export_fleet, repartition
from limpet.spark.score import fit, score
from limpet.spark.session import session

__all__ = ["export_fleet", "fit", "repartition", "score", "session"]
