"""Learners as bytes and files, without pickle.

    "HOLDFAST" | format version (4 bytes) | header length (4 bytes) | header (JSON) | state (float64) | CRC-32 (4 bytes)

All numbers are little-endian. The header names the learner, its settings, and what it has found out about the data
(width, names); the state is the flat vector as it is. A file is written under a temporary name, flushed to the
disk and renamed, so that a crash leaves the old file or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, CheckpointError
from holdfast.scheme.state import Vector

MAGIC = b"HOLDFAST"
VERSION = 1
PREFIX = struct.Struct("<8sII")
CHECKSUM = struct.Struct("<I")
ALIGNED = 64  # bytes


Bytes = bytes | bytearray | memoryview


def sealed(header: dict[str, Any], body: Iterable[Bytes]) -> Iterator[Bytes]:
    """Header and body with all that goes around them, piece by piece."""
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-(PREFIX.size + len(text)) % ALIGNED)  # so that the body can be used where it lies
    checksum = 0
    for piece in (PREFIX.pack(MAGIC, VERSION, len(text)), text, *body):
        checksum = zlib.crc32(piece, checksum)
        yield piece
    yield CHECKSUM.pack(checksum)


def unsealed(data: Bytes) -> tuple[dict[str, Any], memoryview]:
    """Header and body of what `sealed` gave; an error that says what is wrong with them, if anything is."""
    view = memoryview(data)
    if len(view) < PREFIX.size or view[:8] != MAGIC:
        raise CheckpointError("this is not a holdfast checkpoint: it does not begin with the bytes 'HOLDFAST'")
    _, version, length = PREFIX.unpack_from(view)
    if version != VERSION:
        raise CheckpointError(f"this checkpoint has format {version}; this holdfast reads format {VERSION}")
    whole, end = view[: -CHECKSUM.size], PREFIX.size + length
    if len(whole) < end or CHECKSUM.unpack(view[-CHECKSUM.size :])[0] != zlib.crc32(whole):
        raise CheckpointError("this checkpoint is truncated or altered: its checksum does not agree")
    header: dict[str, Any] = json.loads(bytes(whole[PREFIX.size : end]))
    return header, whole[end:]


def opened(data: Bytes) -> tuple[dict[str, Any], memoryview]:
    """Header and body of a learner or a fleet."""
    header, body = unsealed(data)
    lacking = [name for name in ("learner", "settings", "width", "names") if name not in header]
    if lacking:
        raise CheckpointError(f"this checkpoint's header lacks {', '.join(lacking)}")
    return header, body


def pack(header: dict[str, Any], state: Vector) -> bytes:
    """Header and state as bytes."""
    return b"".join(sealed(header, [state.astype("<f8").tobytes()]))


def unpack(data: bytes) -> tuple[dict[str, Any], Vector]:
    """Header and state from bytes."""
    header, body = opened(data)
    if "fleet" in header:
        raise CheckpointError(
            "these are the bytes of a fleet, not of a learner: holdfast.load and from_bytes read both"
        )
    if len(body) % 8:
        raise CheckpointError("this checkpoint is altered: its state is not made of whole numbers of 8 bytes")
    return header, np.frombuffer(body, "<f8").astype(np.float64)


def write(path: str | os.PathLike[str], pieces: Iterable[Bytes]) -> None:
    """Writes a file so that it is there whole or not at all, also after a crash."""
    target = Path(path)
    if target.is_dir():
        raise BadInputError(f"{target} is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise BadInputError(f"{target} cannot be written: there is no folder {target.parent}")
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name itself, where folders can be flushed
        folder = os.open(target.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
