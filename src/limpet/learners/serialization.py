"""How a learner is kept, copied and gone on with: as bytes, in a file, or with other settings."""

from __future__ import annotations

import inspect
import json
import math
import os
import struct
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from limpet._registry import registered_name
from limpet.core.state import Vector
from limpet.core.step_sizes import StepSize
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.learners._engine import Engine
from limpet.learners.input import Names
from limpet.models.base import Model, model_from_config
from limpet.models.priors import ConjugatePrior

# Settings by name, as scikit-learn and river have it: what `__init__` was given can be asked for, copied and shown.

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


# Learners as bytes and files, without pickle.
#
#     "LIMPET" | format version (4 bytes) | header length (4 bytes) | header (JSON) | state (float64) | CRC-32 (4 bytes)
#
# All numbers are little-endian. The header names the learner, its settings, and what it has found out about the data
# (width, names); the state is the flat vector as it is. A file is written under a temporary name, flushed to the
# disk and renamed, so that a crash leaves the old file or the new one, never half of one.

MAGIC = b"LIMPET\r\n"
VERSION = 1
PREFIX_STRUCT = struct.Struct("<8sII")
CHECKSUM_STRUCT = struct.Struct("<I")
BODY_ALIGNMENT_BYTES = 64  # bytes


BytesLike = bytes | bytearray | memoryview


def pack_container(header: dict[str, Any], body: Iterable[BytesLike]) -> Iterator[BytesLike]:
    """Header and body with all that goes around them, piece by piece."""
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (
        -(PREFIX_STRUCT.size + len(text)) % BODY_ALIGNMENT_BYTES
    )  # so that the body can be used where it lies
    checksum = 0
    for piece in (PREFIX_STRUCT.pack(MAGIC, VERSION, len(text)), text, *body):
        checksum = zlib.crc32(piece, checksum)
        yield piece
    yield CHECKSUM_STRUCT.pack(checksum)


def unpack_container(data: BytesLike) -> tuple[dict[str, Any], memoryview]:
    """Header and body of what `sealed` gave; an error that says what is wrong with them, if anything is."""
    view = memoryview(data)
    if len(view) < PREFIX_STRUCT.size or view[:8] != MAGIC:
        raise CheckpointError("this is not a limpet checkpoint: it does not begin with the bytes 'LIMPET'")
    _, version, length = PREFIX_STRUCT.unpack_from(view)
    if version != VERSION:
        raise CheckpointError(f"this checkpoint has format {version}; this limpet reads format {VERSION}")
    content, end = view[: -CHECKSUM_STRUCT.size], PREFIX_STRUCT.size + length
    if len(content) < end or CHECKSUM_STRUCT.unpack(view[-CHECKSUM_STRUCT.size :])[0] != zlib.crc32(content):
        raise CheckpointError("this checkpoint is truncated or altered: its checksum does not agree")
    header: dict[str, Any] = json.loads(bytes(content[PREFIX_STRUCT.size : end]))
    return header, content[end:]


def read_header(data: BytesLike) -> tuple[dict[str, Any], memoryview]:
    """Header and body of a learner or a fleet."""
    header, body = unpack_container(data)
    missing = [name for name in ("learner", "settings", "width", "names") if name not in header]
    if missing:
        raise CheckpointError(f"this checkpoint's header lacks {', '.join(missing)}")
    return header, body


def pack(header: dict[str, Any], state: Vector) -> bytes:
    """Header and state as bytes."""
    return b"".join(pack_container(header, [state.astype("<f8").tobytes()]))


def unpack(data: bytes) -> tuple[dict[str, Any], Vector]:
    """Header and state from bytes."""
    header, body = read_header(data)
    if "fleet" in header:
        raise CheckpointError("these are the bytes of a fleet, not of a learner: limpet.load and from_bytes read both")
    if len(body) % 8:
        raise CheckpointError("this checkpoint is altered: its state is not made of whole numbers of 8 bytes")
    return header, np.frombuffer(body, "<f8").astype(np.float64)


def atomic_write(path: str | os.PathLike[str], pieces: Iterable[BytesLike]) -> None:
    """Writes a file so that it is there whole or not at all, also after a crash."""
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target} cannot be written: there is no folder {target.parent}")
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    file_descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(file_descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name itself, where folders can be flushed
        directory = os.open(target.parent, os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


# Settings of learners as JSON: numbers and words as they are, models and step sizes by name.


def to_json(value: Any) -> Any:
    """The value as JSON can hold it.

    >>> to_json(math.inf), to_json(Penalty(weight=0.1))["penalty"]["weight"]
    ({'number': 'inf'}, 0.1)
    """
    if isinstance(value, Model):
        return {
            "model": registered_name(type(value)),
            "settings": {k: to_json(v) for k, v in value.to_config().items()},
        }
    if isinstance(value, StepSize) and is_dataclass(value):
        return {
            "step_size": registered_name(type(value)),
            "settings": {k: to_json(v) for k, v in asdict(value).items()},
        }
    if isinstance(value, ConjugatePrior):
        return {"penalty": {k: to_json(v) for k, v in asdict(value).items()}}
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, tuple | list | np.ndarray):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def from_json(value: Any) -> Any:
    """The value that `to_json` was given."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return float(value["number"])
    if "penalty" in value:
        return ConjugatePrior(**{k: from_json(v) for k, v in value["penalty"].items()})
    settings = {k: from_json(v) for k, v in value["settings"].items()}
    if "model" in value:
        return model_from_config(value["model"], settings)
    return StepSize.registry[value["step_size"]](**settings)


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
        """The learner with all it has learnt, as bytes; `limpet.from_bytes` makes it again."""
        width = None if self._engine is None else self._engine.width
        return pack({**self._config(width, self._names), **self._extra_header()}, self.state)

    def _config(self, width: int | None, names: Names | None) -> dict[str, Any]:
        """The header of a checkpoint."""
        settings = {name: to_json(value) for name, value in self.get_params().items()}
        return {"learner": registered_name(type(self)), "settings": settings, "width": width, "names": names}

    def with_params(self, **settings: Any) -> Self:
        """One that goes on where this one is, with other settings, of those that are `retunable`.

        >>> from limpet import SRA
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
        """Writes the learner to a file, whole or not at all; `limpet.load` reads it."""
        atomic_write(path, [self.to_bytes()])

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        from limpet.learners.base import from_bytes

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
