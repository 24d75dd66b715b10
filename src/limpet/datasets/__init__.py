"""Streams with a known truth: generators, loaders, and the class `Stream`."""

from limpet.datasets.labelled_stream import Stream
from limpet.datasets.nab import load_nab
from limpet.datasets.outlier_datasets import load_smtp, load_thyroid
from limpet.datasets.skab import load_skab
from limpet.datasets.synthetic import make_abrupt, make_gradual, make_traffic
from limpet.datasets.well_log import load_well_log

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
