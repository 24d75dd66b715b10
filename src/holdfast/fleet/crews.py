"""Which crew an engine's streams need."""

from __future__ import annotations

from holdfast.errors import BadInputError
from holdfast.fleet.crew import Crew
from holdfast.learners.engine import Engine
from holdfast.learners.plain_engine import PlainEngine


def crew_of(engine: Engine) -> Crew:
    """The crew for streams like that of this engine."""
    if engine.undecided:
        raise BadInputError("a fleet needs to know the number of components: n_components='auto' is for single streams")
    if isinstance(engine, PlainEngine):
        from holdfast.fleet.plain_crew import PlainCrew

        return PlainCrew(engine)
    from holdfast.fleet.pilot_crew import PilotCrew

    return PilotCrew(engine)  # type: ignore[arg-type]
