"""Fleets and learners from files."""
from holdfast.learners import load
