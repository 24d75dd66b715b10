"""Change detectors as score streams: for each point a number that is large where the stream has changed."""

from holdfast.detectors.adwin import ADWIN
from holdfast.detectors.base import Detector
from holdfast.detectors.kswin import KSWIN
from holdfast.detectors.page_hinkley import PageHinkley
from holdfast.detectors.river_page_hinkley import RiverPageHinkley

__all__ = ["ADWIN", "KSWIN", "Detector", "PageHinkley", "RiverPageHinkley"]
