"""Streams with a known truth: the paper's generators, its real data sets, and the record they come in."""

from holdfast.datasets.nab import load_nab
from holdfast.datasets.skab import load_skab
from holdfast.datasets.smtp import load_smtp
from holdfast.datasets.stream import Stream
from holdfast.datasets.synthetic import make_abrupt, make_gradual
from holdfast.datasets.thyroid import load_thyroid
from holdfast.datasets.well_log import load_well_log

__all__ = [
    "Stream",
    "load_nab",
    "load_skab",
    "load_smtp",
    "load_thyroid",
    "load_well_log",
    "make_abrupt",
    "make_gradual",
]
