"""Settings by name, as scikit-learn and river have it: what `__init__` was given can be asked for, copied and shown."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from holdfast.errors import BadInputError


class Parameters:
    """For classes that keep every argument of `__init__` in an attribute of the same name."""

    changeable: ClassVar[tuple[str, ...]] = ()
    """Settings that may be changed later."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings it was made with, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def clone(self) -> Self:
        """One with the same settings that has seen nothing."""
        return type(self)(**self.get_params())

    def __setattr__(self, name: str, value: Any) -> None:
        """A setting is given once, to `__init__`: what was laid out for it would not follow a change."""
        if name not in self.changeable and hasattr(self, name) and name in inspect.signature(type(self)).parameters:
            raise BadInputError(
                f"{name} is fixed when a {type(self).__name__} is made; make a new one with another {name}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        given = {k: v for k, v in self.get_params().items() if repr(v) != repr(parameters[k].default)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
