"""Groups of sightings that show one person, by what their distances to each other say."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
_LINKED = 0.5  # part of a group's members that a newcomer must be close to


def group(
    embeddings: NDArray[np.floating],
    scales: NDArray[np.floating],
    cut: float,
    must_differ: Iterable[tuple[int, int]] = (),
) -> Rows:
    """Join sightings whose distance is below `cut` in units of their own scales.

    One after the other joins the group to half of whose members or more it is close, the one with
    most; so a chain of likenesses does not join strangers at its ends.

    Parameters
    ----------
    embeddings : array (n, r)
        Time and memory grow with the square of n.
    scales : array (n,)
        The typical squared distance of each sighting to others of its camera.
    cut : float
        Relative distance up to which a pair is close.
    must_differ : pairs of rows
        Who was said to be two people.

    Returns
    -------
    int array (n,)
        Numbers from 0 in the order in which groups begin.
    """
    X = np.asarray(embeddings, np.float64)
    squares = np.einsum("ij,ij->i", X, X)
    D = squares[:, None] + squares - 2.0 * X @ X.T
    close = np.less_equal(D, cut * np.sqrt(np.outer(scales, scales)))
    barred = np.zeros_like(close)
    for a, b in must_differ:
        barred[a, b] = barred[b, a] = True
    codes = np.full(len(X), -1)
    sizes: list[int] = []
    for row in range(len(X)):
        found = len(sizes)
        before = codes[:row]
        links = np.bincount(before[close[row, :row]], minlength=found)[:found]
        links[np.unique(before[barred[row, :row]])] = 0
        enough = (links > 0) & (links >= _LINKED * np.array(sizes))
        good: list[int] = np.flatnonzero(enough).tolist()
        if good:
            best = max(good, key=links.__getitem__)
            codes[row] = best
            sizes[best] += 1
        else:
            codes[row] = found
            sizes.append(1)
    return codes
