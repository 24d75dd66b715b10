"""Split a stream of bytes into blocks of whole lines, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from limpet.streams.formats.json import MAX_RECORD_BYTES

READ_BLOCK_BYTES = 1 << 18  # about the size of a batch
MAX_LOGGED_LINE_BYTES = 400  # of an oversized line
ReadFunction = Callable[[int], bytes | None]
"""Return up to n bytes: b"" at the end, None if no data has arrived yet."""


@dataclass(frozen=True)
class Block:
    """Whole lines, the offset after them, and the beginning of an oversized line that was left out after them."""

    data: bytes
    end: int
    oversized_prefix: bytes | None = None


def iter_line_blocks(
    read: ReadFunction,
    offset: int,
    is_last_line_complete: Callable[[], bool] = lambda: True,
    block_bytes: int = READ_BLOCK_BYTES,
) -> Iterator[Block]:
    """Yield blocks of lines; an empty one whenever no whole line has arrived.

    Parameters
    ----------
    read : callable
        Returns up to n bytes: b"" at the end, None if no data has arrived yet.
    offset : int
        Offset of the first line.
    is_last_line_complete : callable
        Called at the end: whether a last line without a line end is complete.
    block_bytes : int
        Bytes to read at a time.

    Examples
    --------
    >>> pieces = iter([b"a\\nb", b"c\\n", None, b"d", b""])
    >>> [(block.data, block.end) for block in iter_line_blocks(lambda n: next(pieces), 0)]
    [(b'a\\n', 2), (b'bc\\n', 5), (b'', 5), (b'', 5), (b'd', 6)]
    """
    pieces: list[bytes] = []  # of an incomplete line
    size = 0  # of the pieces
    oversized_prefix: bytes | None = None
    while (piece := read(block_bytes)) != b"":
        if piece is None:
            yield Block(b"", offset)
            continue
        if oversized_prefix is not None:
            end = piece.find(b"\n") + 1
            size += end or len(piece)
            if not end:
                yield Block(b"", offset)
                continue
            offset += size
            yield Block(b"", offset, oversized_prefix)
            oversized_prefix, size, piece = None, 0, piece[end:]
        cut = piece.rfind(b"\n") + 1
        if cut:
            data = b"".join([*pieces, piece[:cut]])
            pieces, size = [], 0
            offset += len(data)
            yield Block(data, offset)
        else:
            yield Block(b"", offset)
        pieces.append(piece[cut:])
        size += len(piece) - cut
        if size > MAX_RECORD_BYTES:
            oversized_prefix, pieces = b"".join(pieces)[:MAX_LOGGED_LINE_BYTES], []
    rest = b"".join(pieces)
    if oversized_prefix is not None:
        yield Block(b"", offset + size, oversized_prefix)
    elif rest and is_last_line_complete():
        yield Block(rest, offset + len(rest))
