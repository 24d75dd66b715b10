"""Blocks of whole lines out of a flow of bytes, however long a line is and however slowly it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.streams.records import LONGEST

AT_ONCE = 1 << 18  # bytes, unless said otherwise: points that come together are told and made sure of together
LONGEST_SHOWN = 400  # bytes of a line that is too long
Read = Callable[[int], bytes | None]
"""Up to so many bytes: none at the end, None if nothing has come yet."""


@dataclass(frozen=True)
class Block:
    """Whole lines. end: how many bytes of the flow have been used with them. too_long: how a line begins that follows
    them and has been left out because it is too long."""

    data: bytes
    end: int
    too_long: bytes | None = None


def blocks(
    read: Read, offset: int, ends_whole: Callable[[], bool] = lambda: True, at_once: int = AT_ONCE
) -> Iterator[Block]:
    """Blocks of lines, the first of which begins at this offset; an empty one whenever no line has come yet.

    ends_whole: is asked at the end whether a last line without an end is all of it. at_once: how many bytes to read at
    a time.

    >>> pieces = iter([b"a\\nb", b"c\\n", None, b"d", b""])
    >>> [(block.data, block.end) for block in blocks(lambda n: next(pieces), 0)]
    [(b'a\\n', 2), (b'bc\\n', 5), (b'', 5), (b'', 5), (b'd', 6)]
    """
    waiting: list[bytes] = []  # pieces of a line whose end has not come
    size = 0  # of them
    too_long: bytes | None = None  # the beginning of a line of which no more is kept
    while (piece := read(at_once)) != b"":
        if piece is None:
            yield Block(b"", offset)
            continue
        if too_long is not None:
            end = piece.find(b"\n") + 1
            size += end or len(piece)
            if not end:
                yield Block(b"", offset)
                continue
            offset += size
            yield Block(b"", offset, too_long)
            too_long, size, piece = None, 0, piece[end:]
        cut = piece.rfind(b"\n") + 1
        if cut:
            data = b"".join([*waiting, piece[:cut]])
            waiting, size = [], 0
            offset += len(data)
            yield Block(data, offset)
        else:
            yield Block(b"", offset)
        waiting.append(piece[cut:])
        size += len(piece) - cut
        if size > LONGEST:
            too_long, waiting = b"".join(waiting)[:LONGEST_SHOWN], []
    rest = b"".join(waiting)
    if too_long is not None:
        yield Block(b"", offset + size, too_long)
    elif rest and ends_whole():
        yield Block(rest, offset + len(rest))
