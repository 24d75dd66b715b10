"""Learn many keyed streams at once, as rows of one matrix of states."""

from limpet.fleet.fleet import Fleet, from_bytes, load

__all__ = ["Fleet", "from_bytes", "load"]
