"""Streams with a known truth: generators, loaders, and the class `Stream`."""

from limpet.datasets.labeled_stream import Stream
from limpet.datasets.loaders import load_nab, load_skab, load_smtp, load_thyroid, load_well_log
from limpet.datasets.synthetic import make_abrupt, make_gradual, make_traffic

__all__ = [
    "Stream",
    "load_nab",
    "load_skab",
    "load_smtp",
    "load_thyroid",
    "load_well_log",
    "make_abrupt",
    "make_gradual",
    "make_traffic",
]
