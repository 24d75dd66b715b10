"""Blocks of whole lines out of a flow of bytes, however long a line is and however slowly it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from limpet.streams.formats.json import MAX_RECORD_BYTES

READ_BLOCK_BYTES = 1 << 18  # bytes, unless said otherwise: points that come together are told and made sure of together
MAX_LOGGED_LINE_BYTES = 400  # bytes of a line that is too long
ReadFunction = Callable[[int], bytes | None]
"""Up to so many bytes: none at the end, None if nothing has come yet."""


@dataclass(frozen=True)
class Block:
    """Whole lines. end: how many bytes of the flow have been used with them. too_long: how a line begins that follows
    them and has been left out because it is too long."""

    data: bytes
    end: int
    oversized_prefix: bytes | None = None


def iter_line_blocks(
    read: ReadFunction,
    offset: int,
    is_last_line_complete: Callable[[], bool] = lambda: True,
    block_bytes: int = READ_BLOCK_BYTES,
) -> Iterator[Block]:
    """Blocks of lines, the first of which begins at this offset; an empty one whenever no line has come yet.

    ends_whole: is asked at the end whether a last line without an end is all of it. at_once: how many bytes to read at
    a time.

    >>> pieces = iter([b"a\\nb", b"c\\n", None, b"d", b""])
    >>> [(block.data, block.end) for block in blocks(lambda n: next(pieces), 0)]
    [(b'a\\n', 2), (b'bc\\n', 5), (b'', 5), (b'', 5), (b'd', 6)]
    """
    pieces: list[bytes] = []  # pieces of a line whose end has not come
    size = 0  # of them
    oversized_prefix: bytes | None = None  # the beginning of a line of which no more is kept
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
