"""Which crew an engine's streams need."""

from __future__ import annotations

from holdfast.fleet.crew import Crew
from holdfast.learners.engine import Engine
from holdfast.learners.plain_engine import PlainEngine


def crew_of(engine: Engine) -> Crew:
    """The crew for streams like that of this engine."""
    if isinstance(engine, PlainEngine):
        from holdfast.fleet.plain_crew import PlainCrew

        return PlainCrew(engine)
    from holdfast.fleet.pilot_crew import PilotCrew

    return PilotCrew(engine)  # type: ignore[arg-type]
