"""Drift detectors as score streams: a number per point, large at a change."""

from limpet.drift.adwin import ADWIN
from limpet.drift.base import DriftDetector
from limpet.drift.kswin import KSWIN
from limpet.drift.page_hinkley import PageHinkley, RiverPageHinkley

__all__ = ["ADWIN", "KSWIN", "DriftDetector", "PageHinkley", "RiverPageHinkley"]
