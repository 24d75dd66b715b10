"""Settings by name, as scikit-learn and river have it: what `__init__` was given can be asked for, copied and shown."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from holdfast.errors import InvalidInputError

_init_params_cache: dict[type, dict[str, Any]] = {}  # asked for often, and slow to find out


def get_init_params(cls: type) -> dict[str, Any]:
    """The arguments of a class and their defaults."""
    if cls not in _init_params_cache:
        signature = inspect.signature(cls)
        _init_params_cache[cls] = {name: parameter.default for name, parameter in signature.parameters.items()}
    return _init_params_cache[cls]


class ParamsMixin:
    """For classes that keep every argument of `__init__` in an attribute of the same name."""

    settable_params: ClassVar[tuple[str, ...]] = ()
    """Settings that may be changed later."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings it was made with, by name."""
        return {name: getattr(self, name) for name in get_init_params(type(self))}

    def clone(self) -> Self:
        """One with the same settings that has seen nothing."""
        return type(self)(**self.get_params())

    def __setattr__(self, name: str, value: Any) -> None:
        """A setting is given once, to `__init__`: what was laid out for it would not follow a change."""
        if name in get_init_params(type(self)) and name not in self.settable_params and hasattr(self, name):
            raise InvalidInputError(
                f"{name} is fixed when a {type(self).__name__} is made; make a new one with another {name}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        defaults = get_init_params(type(self))
        given = {k: v for k, v in self.get_params().items() if repr(v) != repr(defaults[k])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
