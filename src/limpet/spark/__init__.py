"""Score DataFrames on Spark, batch and streaming, with the results of a fleet to the last bit."""

from limpet.spark.migrate import export_fleet, repartition
from limpet.spark.score import fit, score
from limpet.spark.session import session

__all__ = ["export_fleet", "fit", "repartition", "score", "session"]
