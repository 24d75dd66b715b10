"""Classes by name, so that a checkpoint can say what it was made with and nothing has to be unpickled."""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast.errors import CheckpointError

Kind = TypeVar("Kind")


def name_of(cls: type) -> str:
    """Ours by their plain name; anyone else's by module and name, so that nobody takes the place of ours.

    >>> name_of(dict), name_of(CheckpointError)
    ('builtins:dict', 'CheckpointError')
    """
    return cls.__name__ if cls.__module__.startswith("holdfast.") else f"{cls.__module__}:{cls.__qualname__}"


class Registry(Generic[Kind]):
    """The known subclasses of something."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.known: dict[str, type[Kind]] = {}

    def add(self, cls: type[Kind]) -> None:
        """Makes a class known."""
        self.known[name_of(cls)] = cls

    def __getitem__(self, name: str) -> type[Kind]:
        if name not in self.known:
            raise CheckpointError(
                f"this was made with the {self.what} {name!r}, which is not known here: "
                "import the module that defines it first"
            )
        return self.known[name]
