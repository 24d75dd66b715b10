"""The trade-off between threshold and step size: the paper's bound on the error, and the pair that makes it least."""

import numpy as np

from limpet import tradeoff
from limpet.plots.tradeoff import draw_tradeoff

constants = tradeoff.Constants(alpha=0.99, U=20.0, M=5.0, L=1.0, V=1.0, n=10_000)
draw_tradeoff(np.linspace(6.0, 24.0, 300), constants, "trade-off.png")
