"""Classes by name, so that a checkpoint can say what it was made with and nothing has to be unpickled."""

from __future__ import annotations

from typing import Generic, TypeVar

from limpet.exceptions import CheckpointError

Kind = TypeVar("Kind")


def registered_name(cls: type) -> str:
    """Ours by their plain name; anyone else's by module and name, so that nobody takes the place of ours.

    >>> name_of(dict), name_of(CheckpointError)
    ('builtins:dict', 'CheckpointError')
    """
    return cls.__name__ if cls.__module__.startswith("limpet.") else f"{cls.__module__}:{cls.__qualname__}"


class Registry(Generic[Kind]):
    """The known subclasses of something."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.classes: dict[str, type[Kind]] = {}

    def add(self, cls: type[Kind]) -> None:
        """Makes a class known."""
        self.classes[registered_name(cls)] = cls

    def __getitem__(self, name: str) -> type[Kind]:
        if name not in self.classes:
            raise CheckpointError(
                f"this was made with the {self.kind} {name!r}, which is not known here: "
                "import the module that defines it first"
            )
        return self.classes[name]
