"""Streams with a known truth: the paper's generators and the record they come in."""

from holdfast.datasets.stream import Stream
from holdfast.datasets.synthetic import make_abrupt, make_gradual

__all__ = ["Stream", "make_abrupt", "make_gradual"]
