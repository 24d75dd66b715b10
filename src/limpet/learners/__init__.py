"""The learners: Detector, SRA, SEM, IEM, SDEM and StochasticApproximation."""

from limpet.learners.base import Learner, from_bytes, load
from limpet.learners.detector import Detector
from limpet.learners.em import IEM, SDEM, SEM
from limpet.learners.results import Step, Trace
from limpet.learners.sra import SRA
from limpet.learners.stochastic_approximation import StochasticApproximation

__all__ = ["IEM", "SDEM", "SEM", "SRA", "Detector", "Learner", "Step", "StochasticApproximation", "Trace"]
__all__ += ["from_bytes", "load"]
