"""Rank 1 for each pair of cameras: how well one camera finds people in another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.evaluation.ranking import answers

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CameraPairs:
    """Counts of queries by their own camera (rows) and the camera searched (columns)."""

    cameras: tuple[str, ...]
    asked: Counts  # queries whose person the column's camera has seen
    right: Counts  # those whose most alike sighting there is the right person

    @property
    def rank1(self) -> NDArray[np.float64]:
        """Fraction that was right, NaN where nobody was asked for."""
        nobody = np.full(self.asked.shape, np.nan)
        return np.divide(self.right, self.asked, out=nobody, where=self.asked > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain types."""
        return {
            "cameras": list(self.cameras),
            "asked": self.asked.tolist(),
            "right": self.right.tolist(),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> CameraPairs:
        """Restore what `to_dict` gave."""
        counts = (np.array(told[name], np.int64) for name in ("asked", "right"))
        return cls(tuple(told["cameras"]), *counts)

    @classmethod
    def total(cls, parts: Iterable[CameraPairs]) -> CameraPairs:
        """Add up counts of the same cameras, such as those of several splits."""
        given = list(parts)
        if len({one.cameras for one in given}) != 1:
            raise InputError("counts of camera pairs can only be added for the same cameras")
        sums = (sum(getattr(one, name) for one in given) for name in ("asked", "right"))
        return cls(given[0].cameras, *(np.asarray(counts) for counts in sums))


def camera_pairs(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    query_cameras: ArrayLike,
    gallery_cameras: ArrayLike,
    *,
    junk: ArrayLike | None = None,
    cameras: Iterable[str] | None = None,
) -> CameraPairs:
    """Count right first answers for each pair of cameras.

    Every query is asked of each other camera that has seen its person, among the sightings of
    that camera alone. Ties never flatter: a wrong sighting at the same distance comes first.
    Parameters are those of `resight.evaluation.cmc`, and all cameras in the order of the table.

    >>> found = camera_pairs([[1.0, 2.0, 3.0]], ["a"], ["a", "a", "b"], ["1"], ["2", "3", "3"])
    >>> found.cameras, found.right.tolist()
    (('1', '2', '3'), [[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    """
    D = np.asarray(distances, float)
    labels = answers(query_persons, gallery_persons, query_cameras, gallery_cameras, junk)
    labels.require_shape(D)
    asking, seen, persons = np.asarray(query_cameras), np.asarray(gallery_cameras), labels.persons
    names = tuple(np.union1d(asking, seen).tolist() if cameras is None else cameras)
    asked, right = np.zeros((2, len(names), len(names)), np.int64)
    for j, name in enumerate(names):
        columns = np.flatnonzero((seen == name) & ~labels.junk)
        part, same = D[:, columns], persons[0][:, None] == persons[1][columns]
        best_right = np.where(same, part, np.inf).min(axis=1, initial=np.inf)
        best_wrong = np.where(same, np.inf, part).min(axis=1, initial=np.inf)
        for i, own in enumerate(names):
            if i != j:
                counts = (asking == own) & np.isfinite(best_right)
                asked[i, j] = counts.sum()
                right[i, j] = (counts & (best_right < best_wrong)).sum()
    return CameraPairs(names, asked, right)
