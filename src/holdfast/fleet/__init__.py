"""Many keyed streams at once: one matrix of states."""

from holdfast.fleet.fleet import Fleet
from holdfast.fleet.restoring import from_bytes, load

__all__ = ["Fleet", "from_bytes", "load"]
