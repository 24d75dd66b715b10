"""Serialization: parameters as JSON, state as checksummed container, files."""

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

# Learners as bytes and files, without pickle.
#
#     "LIMPET" | format version (4 bytes) | header length (4 bytes) | header (JSON) | state (float64) | CRC-32 (4 bytes)
#
# All numbers are little-endian. The header holds the class, its parameters, and the width and names of the data; the
# state is the flat vector. A file is written under a temporary name, flushed to the disk and renamed, so that a crash
# leaves the old file or the new one, never a part of one.

MAGIC = b"LIMPET\r\n"
VERSION = 1
PREFIX_STRUCT = struct.Struct("<8sII")
CHECKSUM_STRUCT = struct.Struct("<I")
BODY_ALIGNMENT_BYTES = 64

BytesLike = bytes | bytearray | memoryview


def pack_container(header: dict[str, Any], body: Iterable[BytesLike]) -> Iterator[BytesLike]:
    """Yield the container of a header and a body, piece by piece."""
    text = json.dumps(header, sort_keys=True).encode()
    n_padding = -(PREFIX_STRUCT.size + len(text)) % BODY_ALIGNMENT_BYTES
    text += b" " * n_padding  # so that the body can be used without a copy
    checksum = 0
    for piece in (PREFIX_STRUCT.pack(MAGIC, VERSION, len(text)), text, *body):
        checksum = zlib.crc32(piece, checksum)
        yield piece
    yield CHECKSUM_STRUCT.pack(checksum)


def unpack_container(data: BytesLike) -> tuple[dict[str, Any], memoryview]:
    """Return header and body of a container; raise CheckpointError if it is damaged."""
    view = memoryview(data)
    if len(view) < PREFIX_STRUCT.size or view[:8] != MAGIC:
        raise CheckpointError("data: must start with the bytes of a limpet file, got a file of another kind.")
    _, version, length = PREFIX_STRUCT.unpack_from(view)
    if version != VERSION:
        raise CheckpointError(f"data: must have format {VERSION}, got {version}. Use the version that wrote it.")
    content, end = view[: -CHECKSUM_STRUCT.size], PREFIX_STRUCT.size + length
    if len(content) < end or CHECKSUM_STRUCT.unpack(view[-CHECKSUM_STRUCT.size :])[0] != zlib.crc32(content):
        raise CheckpointError("data: must match its checksum, got a truncated or corrupted file.")
    header: dict[str, Any] = json.loads(bytes(content[PREFIX_STRUCT.size : end]))
    return header, content[end:]


def read_header(data: BytesLike) -> tuple[dict[str, Any], memoryview]:
    """Return header and body of a learner or a fleet."""
    header, body = unpack_container(data)
    missing = [name for name in ("learner", "settings", "width", "names") if name not in header]
    if missing:
        raise CheckpointError(f"data: must have {', '.join(missing)} in its header, got none.")
    return header, body


def pack(header: dict[str, Any], state: Vector) -> bytes:
    """Return header and state as bytes."""
    return b"".join(pack_container(header, [state.astype("<f8").tobytes()]))


def unpack(data: bytes) -> tuple[dict[str, Any], Vector]:
    """Return header and state from bytes."""
    header, body = read_header(data)
    if "fleet" in header:
        raise CheckpointError("data: must be a learner, got a fleet. limpet.load and limpet.from_bytes read both.")
    if len(body) % 8:
        raise CheckpointError(f"data: must have a state of a multiple of 8 bytes, got {len(body)}.")
    return header, np.frombuffer(body, "<f8").astype(np.float64)


def atomic_write(path: str | os.PathLike[str], pieces: Iterable[BytesLike]) -> None:
    """Write a file atomically: after a crash it is complete or absent."""
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"path: must be a file, got the folder {target}.")
    if not target.parent.is_dir():
        raise InvalidInputError(f"path: must be in an existing folder, got {target}.")
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
    fsync_folder(target.parent)


def fsync_folder(folder: Path) -> None:
    """Sync the creation, renaming and removal of files in a folder, where supported."""
    if hasattr(os, "O_DIRECTORY"):
        file_descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(file_descriptor)
        finally:
            os.close(file_descriptor)


def to_json(value: Any) -> Any:
    """Return a parameter as JSON can represent it.

    >>> to_json(math.inf), to_json(ConjugatePrior(weight=0.1))["penalty"]["weight"]
    ({'number': 'inf'}, 0.1)
    """
    if isinstance(value, dict):
        return {k: to_json(v) for k, v in value.items()}
    if isinstance(value, Model):
        return {"model": registered_name(type(value)), "settings": to_json(value.to_config())}
    if isinstance(value, StepSize) and is_dataclass(value):
        return {"step_size": registered_name(type(value)), "settings": to_json(asdict(value))}
    if isinstance(value, ConjugatePrior):
        return {"penalty": to_json(asdict(value))}
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, tuple | list | np.ndarray):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def from_json(value: Any) -> Any:
    """Return the parameter that `to_json` represented."""
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


class Serializable:
    """A learner as state and parameters, each an attribute named as in `__init__`."""

    _engine: Engine | None
    _names: Names | None
    _assignable_params: ClassVar[tuple[str, ...]] = ()
    """Parameters that can be assigned after construction."""

    mutable_params: ClassVar[tuple[str, ...]]
    """Names of the parameters that `with_params` can change without losing the state."""

    _init_params: ClassVar[dict[str, Any]]  # the arguments of `__init__` and their defaults

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._init_params = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._init_params}

    def clone(self) -> Self:
        """Return an untrained copy with the same parameters."""
        return type(self)(**self.get_params())

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise: a parameter is fixed, because the state is laid out for it."""
        if name in self._init_params and name not in self._assignable_params and hasattr(self, name):
            raise InvalidInputError(
                f"{name}: cannot change after a {type(self).__name__} is made. Make a new one, or use with_params."
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        defaults = self._init_params
        given = {k: v for k, v in self.get_params().items() if repr(v) != repr(defaults[k])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    @abstractmethod
    def state(self) -> Vector:
        """The flat state vector, read-only."""

    @abstractmethod
    def _make_engine(self, width: int) -> Engine:
        """Make the engine for points of `width` numbers."""

    @abstractmethod
    def _set_engine(self, engine: Engine) -> None:
        """Set the engine; from now on points have its width."""

    def to_bytes(self) -> bytes:
        """Return parameters and state as bytes; `limpet.from_bytes` is the inverse."""
        width = None if self._engine is None else self._engine.width
        return pack({**self.config(width, self._names), **self._extra_header()}, self.state)

    def config(self, width: int | None = None, names: Names | None = None) -> dict[str, Any]:
        """Return class and parameters, as the header of a file has them."""
        settings = {name: to_json(value) for name, value in self.get_params().items()}
        return {"learner": registered_name(type(self)), "settings": settings, "width": width, "names": names}

    def with_params(self, **settings: Any) -> Self:
        """Return a learner with this state and other values of `mutable_params`.

        Examples
        --------
        >>> from limpet import SRA
        >>> sra = SRA(gamma=3.0)
        >>> _ = sra.process([1.0, 2.0, 3.0])
        >>> sra.with_params(gamma=5.0).n_seen
        3
        """
        current = self.get_params()
        fixed = sorted(settings.keys() - set(self.mutable_params))
        if changed := [name for name in fixed if name not in current or settings[name] != current[name]]:
            mutable = ", ".join(self.mutable_params)
            raise InvalidInputError(f"{changed[0]}: cannot change without losing the state. Only {mutable} can.")
        other = type(self)(**(current | settings))
        if self._engine is not None:
            other._restore({"width": self._engine.width, "names": self._names, **self._extra_header()}, self.state)
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to a file, atomically; `limpet.load` is the inverse."""
        atomic_write(path, [self.to_bytes()])

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        from limpet.learners.base import from_bytes

        return from_bytes, (self.to_bytes(),)

    def _extra_header(self) -> dict[str, Any]:
        """Return what else `_restore` needs in the header of a checkpoint."""
        return {}

    def _restore(self, header: dict[str, Any], state: Vector) -> None:
        """Set the state of an untrained learner."""
        names = tuple(header["names"]) if header["names"] else None
        engine = self._rebuild_engine(header)
        if len(engine.buffer.state) != len(state):
            raise CheckpointError(f"state: must have {len(engine.buffer.state)} numbers, got {len(state)}.")
        engine.buffer.state[:] = state
        self._set_engine(engine)
        self._names = engine.names = names

    def _rebuild_engine(self, header: dict[str, Any]) -> Engine:
        """Make the engine that the header of a checkpoint describes."""
        return self._make_engine(header["width"])
