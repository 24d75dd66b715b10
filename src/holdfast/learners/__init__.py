"""What people call: SRA, SEM, IEM, SDEM, and the general scheme of which they are settings."""

from holdfast.learners.iem import IEM
from holdfast.learners.restoring import from_bytes, load
from holdfast.learners.sdem import SDEM
from holdfast.learners.sem import SEM
from holdfast.learners.sra import SRA
from holdfast.learners.step import Step
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.learners.trace import Trace

__all__ = ["IEM", "SDEM", "SEM", "SRA", "Step", "StochasticApproximation", "Trace", "from_bytes", "load"]
