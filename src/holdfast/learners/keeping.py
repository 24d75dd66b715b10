"""How a learner is kept, copied and gone on with: as bytes, in a file, or with other settings."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.learners import checkpoint
from holdfast.learners.engine import Engine
from holdfast.learners.parameters import ParamsMixin
from holdfast.learners.reading import Names
from holdfast.learners.settings import to_json
from holdfast.registry import registered_name
from holdfast.scheme.state import Vector


class Serializable(ParamsMixin):
    """For learners: their settings and their state are all that there is to keep."""

    _engine: Engine | None
    _names: Names | None

    @property
    @abstractmethod
    def state(self) -> Vector:
        """The flat state vector, read-only."""

    @property
    @abstractmethod
    def mutable_params(self) -> tuple[str, ...]:
        """Settings that a state knows nothing of."""

    @abstractmethod
    def _make_engine(self, width: int) -> Engine:
        """The memory for points of this many numbers."""

    @abstractmethod
    def _set_engine(self, engine: Engine) -> None:
        """From now on points are of the engine's width."""

    def to_bytes(self) -> bytes:
        """The learner with all it has learnt, as bytes; `holdfast.from_bytes` makes it again."""
        width = None if self._engine is None else self._engine.width
        return checkpoint.pack({**self._config(width, self._names), **self._extra_header()}, self.state)

    def _config(self, width: int | None, names: Names | None) -> dict[str, Any]:
        """The header of a checkpoint."""
        settings = {name: to_json(value) for name, value in self.get_params().items()}
        return {"learner": registered_name(type(self)), "settings": settings, "width": width, "names": names}

    def with_params(self, **settings: Any) -> Self:
        """One that goes on where this one is, with other settings, of those that are `retunable`.

        >>> from holdfast import SRA
        >>> model = SRA(gamma=3.0)
        >>> _ = model.process([1.0, 2.0, 3.0])
        >>> model.retuned(gamma=5.0).n_seen
        3
        """
        current = self.get_params()
        other = type(self)(**(current | settings))
        fixed = [name for name in settings if settings[name] != current[name] and name not in self.mutable_params]
        if fixed:
            raise InvalidInputError(
                f"{', '.join(fixed)} cannot change while what was learnt goes on: only {', '.join(self.mutable_params)} can"
            )
        if self._engine is not None:
            other._restore({"width": self._engine.width, "names": self._names, **self._extra_header()}, self.state)
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the learner to a file, whole or not at all; `holdfast.load` reads it."""
        checkpoint.atomic_write(path, [self.to_bytes()])

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        from holdfast.learners.restoring import from_bytes

        return from_bytes, (self.to_bytes(),)

    def _extra_header(self) -> dict[str, Any]:
        """What else the header of a checkpoint has to say, for `_restore`."""
        return {}

    def _restore(self, header: dict[str, Any], state: Vector) -> None:
        """The memory as it was, for a learner that has just been made."""
        names = tuple(header["names"]) if header["names"] else None
        engine = self._rebuild_engine(header)
        if len(engine.buffer.state) != len(state):
            raise CheckpointError(f"expected a state of {len(engine.buffer.state)} numbers, got {len(state)}")
        engine.buffer.state[:] = state
        self._set_engine(engine)
        self._names = engine.names = names

    def _rebuild_engine(self, header: dict[str, Any]) -> Engine:
        """The memory as the header of a checkpoint describes it."""
        return self._make_engine(header["width"])
