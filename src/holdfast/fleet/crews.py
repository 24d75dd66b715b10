"""Which crew an engine's streams need."""

from __future__ import annotations

from holdfast.fleet.crew import FleetBackend
from holdfast.learners.engine import Engine
from holdfast.learners.plain_engine import PlainEngine


def backend_for(engine: Engine) -> FleetBackend:
    """The crew for streams like that of this engine."""
    if isinstance(engine, PlainEngine):
        from holdfast.fleet.plain_crew import SRABackend

        return SRABackend(engine)
    from holdfast.fleet.pilot_crew import AutoBackend

    return AutoBackend(engine)  # type: ignore[arg-type]
