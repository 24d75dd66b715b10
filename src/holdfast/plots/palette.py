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

    codes = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    found, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
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
    image = Image.fromarray(nearest.astype(np.uint8)[places.reshape(codes.shape)])
    image.putpalette(colours[kept].astype(np.uint8).tobytes())
    return image
