"""What people call: SRA, SEM, IEM, SDEM, and the general scheme of which they are settings."""

from limpet.learners.base import StochasticApproximation, from_bytes, load
from limpet.learners.em import IEM, SDEM, SEM
from limpet.learners.results import Step, Trace
from limpet.learners.sra import SRA

__all__ = ["IEM", "SDEM", "SEM", "SRA", "Step", "StochasticApproximation", "Trace", "from_bytes", "load"]
