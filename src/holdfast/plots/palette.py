"""A picture in few colours, so that its file is small."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FREQUENT, ALL = 96, 160  # colours: so many for their frequency, so many in all


def with_palette(pixels: npt.NDArray[np.uint8]) -> Any:
    """Return an image of few colours: the most frequent ones, and those that are farthest from them.

    Every other colour, as at the edges of letters, is drawn in the nearest one; the second kind is for three circles
    that are to keep their colour beside a thousand lines.
    """
    from PIL import Image  # matplotlib needs it too

    red, green, blue = (pixels[..., i].astype(np.int32) for i in range(3))
    codes = (red << 16 | green << 8 | blue).reshape(-1)
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))  # most pixels are like the one before
    lengths = np.diff(begins, append=len(codes))
    found, places = np.unique(codes[begins], return_inverse=True)
    counts = np.bincount(places, lengths)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    kept = list(np.argsort(-counts, kind="stable")[:FREQUENT])
    gaps = ((colours[:, None] - colours[kept]) ** 2).sum(axis=2)
    nearest, gap = np.argmin(gaps, axis=1), np.min(gaps, axis=1)
    while len(kept) < ALL and gap.max() > 0:
        farthest = int(np.argmax(gap))
        to_it = ((colours - colours[farthest]) ** 2).sum(axis=1)
        nearest[to_it < gap] = len(kept)
        gap = np.minimum(gap, to_it)
        kept.append(farthest)
    image = Image.fromarray(np.repeat(nearest.astype(np.uint8)[places], lengths).reshape(pixels.shape[:2]))
    image.putpalette(colours[kept].astype(np.uint8).tobytes())
    return image
