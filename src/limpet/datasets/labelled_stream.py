"""Streams with their truth: points, outliers, labels and change points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.datasets._validation import to_flags, to_frozen_array, to_frozen_points, to_row_list

ChangePoints = list[int] | dict[int | str, list[int]]


@dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """A data stream and its truth.

    Rows count from 0, so row r is the paper's time t = r + 1.

    Arrays are copied and made read-only, so that all methods that are compared on a stream get the same data.

    Parameters
    ----------
    y : array (T, d) or (T,)
        The points; a vector is one column.
    means : array (T, K, d), optional
        The true component means at each row, before noise and outliers.
    outliers : bool array (T,), optional
        True where the point was drawn from the noise and not from the mixture.
    labels : 0/1 array (T,), optional
        1 where the point is a labelled anomaly.
    change_points : int, list of int, or dict of them
        First rows of new regimes, in increasing order; a dict holds one list per annotator.
    name : str
        The name in tables.
    split : int, optional
        First row of the test part, where the experiment has one.
    covariances : array (K, d, d), optional
        The true component covariances, where they are known and constant.

    Examples
    --------
    >>> stream = Stream([0.1, 0.2, 5.1], change_points=[2], name="toy")
    >>> stream
    Stream('toy', 3 rows x 1, change at row 2)
    >>> stream.y.flags.writeable
    False
    """

    y: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64] | None = None
    outliers: npt.NDArray[np.bool_] | None = None
    labels: npt.NDArray[np.int64] | None = None
    change_points: ChangePoints = field(default_factory=list)
    name: str = "stream"
    split: int | None = None
    covariances: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        y = to_frozen_points("y", self.y)
        n_rows, dim = y.shape
        checked: dict[str, Any] = {"y": y}
        n_components = None
        if self.means is not None:
            checked["means"] = to_frozen_array("means", self.means, np.float64, (n_rows, None, dim))
            n_components = checked["means"].shape[1]
        if self.covariances is not None:
            shape = (n_components, dim, dim)
            checked["covariances"] = to_frozen_array("covariances", self.covariances, np.float64, shape)
        if self.outliers is not None:
            checked["outliers"] = to_frozen_array("outliers", to_flags("outliers", self.outliers), bool, (n_rows,))
        if self.labels is not None:
            checked["labels"] = to_frozen_array("labels", to_flags("labels", self.labels), np.int64, (n_rows,))
        if isinstance(self.change_points, dict):
            checked["change_points"] = {
                annotator: to_row_list("change_points", rows, n_rows) for annotator, rows in self.change_points.items()
            }
        else:
            checked["change_points"] = to_row_list("change_points", self.change_points, n_rows)
        if self.split is not None:
            checked["split"] = to_row_list("split", [self.split], n_rows)[0]
        for attribute, value in checked.items():
            object.__setattr__(self, attribute, value)  # the dataclass is frozen

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{self.y.shape[0]} rows x {self.y.shape[1]}"]
        if self.means is not None:
            parts.append(f"{self.means.shape[1]} components")
        if self.outliers is not None:
            parts.append(f"{int(self.outliers.sum())} outliers")
        if self.labels is not None:
            parts.append(f"{int(self.labels.sum())} anomalies")
        if isinstance(self.change_points, dict):
            parts.append(f"changes by {len(self.change_points)} annotators")
        elif len(self.change_points) == 1:
            parts.append(f"change at row {self.change_points[0]}")
        elif self.change_points:
            parts.append(f"{len(self.change_points)} changes")
        if self.split is not None:
            parts.append(f"test from row {self.split}")
        return f"Stream({', '.join(parts)})"
