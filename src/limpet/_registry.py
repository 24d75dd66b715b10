"""Registries of classes by name, for checkpoints without pickle."""

from __future__ import annotations

from typing import Generic, TypeVar

from limpet.exceptions import CheckpointError

Kind = TypeVar("Kind")


def registered_name(cls: type) -> str:
    """Return a unique name of a class: with the module, unless it is one of limpet.

    >>> registered_name(dict), registered_name(CheckpointError)
    ('builtins:dict', 'CheckpointError')
    """
    return cls.__name__ if cls.__module__.startswith("limpet.") else f"{cls.__module__}:{cls.__qualname__}"


class Registry(Generic[Kind]):
    """The known subclasses of a base class, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.classes: dict[str, type[Kind]] = {}

    def add(self, cls: type[Kind]) -> None:
        self.classes[registered_name(cls)] = cls

    def __getitem__(self, name: str) -> type[Kind]:
        if name not in self.classes:
            raise CheckpointError(
                f"{self.kind}: {name!r} is unknown. Import the module that defines it before loading the checkpoint."
            )
        return self.classes[name]
