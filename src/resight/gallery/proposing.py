"""Which sightings are most worth teaching next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight.gallery.view import View

_POOL = 400  # unknown sightings looked at, so that the page stays quick on large galleries


def propose(view: View, n: int) -> list[str]:
    """Choose unknown sightings whose best match in another camera is least certain.

    For each unknown sighting the two nearest sightings of other cameras are compared; where the
    second is almost as near as the first, the model cannot tell and an answer teaches it most.

    Returns
    -------
    list of str
        At most `n` ids, the least certain first.
    """
    if view.index is None:
        return []
    unknown = np.flatnonzero(view.persons == "")
    pool = unknown[:: max(1, len(unknown) // _POOL)][:_POOL]
    doubt = margins(view.index.embeddings, view.table.cameras, pool)
    order = np.argsort(doubt, kind="stable")
    return [str(view.table.ids[pool[i]]) for i in order[:n] if np.isfinite(doubt[i])]


def margins(
    embeddings: NDArray[np.float32], cameras: NDArray[np.str_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Share by which the second nearest of other cameras is farther than the nearest.

    Infinite where other cameras have fewer than two sightings.
    """
    squares = np.einsum("ij,ij->i", embeddings, embeddings)
    doubt = np.full(len(rows), np.inf)
    for place, row in enumerate(rows.tolist()):
        D = squares - 2.0 * (embeddings @ embeddings[row]) + squares[row]
        D = D[cameras != cameras[row]]
        if len(D) > 1:
            first, second = np.partition(D, 1)[:2]
            doubt[place] = (second - first) / max(float(second), 1e-12)
    return doubt
