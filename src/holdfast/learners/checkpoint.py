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

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.scheme.state import Vector

MAGIC = b"HOLDFAST"
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
        raise CheckpointError("this is not a holdfast checkpoint: it does not begin with the bytes 'HOLDFAST'")
    _, version, length = PREFIX_STRUCT.unpack_from(view)
    if version != VERSION:
        raise CheckpointError(f"this checkpoint has format {version}; this holdfast reads format {VERSION}")
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
        raise CheckpointError(
            "these are the bytes of a fleet, not of a learner: holdfast.load and from_bytes read both"
        )
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
