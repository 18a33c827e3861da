"""Which sightings are most worth teaching next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight.gallery.view import View

_POOL = 400  # unknown sightings looked at, so that the page stays quick on large galleries


def propose(view: View, n: int) -> list[str]:
    """Choose unknown sightings whose nearest match in another camera is farthest away.

    Nothing looks like them yet: the person's other sighting, if there is one, is one that the
    model does not recognise, and such a pair teaches what easy pairs cannot: how much a person may
    change between cameras. Labelling people at random teaches less (benchmarks/teaching.py).

    Returns
    -------
    list of str
        At most `n` ids, the farthest first.
    """
    if view.index is None:
        return []
    unknown = np.flatnonzero(view.persons == "")
    pool = unknown[:: max(1, len(unknown) // _POOL)][:_POOL]
    nearest = nearest_elsewhere(view.index.embeddings, view.table.cameras, pool)
    order = np.argsort(-nearest, kind="stable")
    return [str(view.table.ids[pool[i]]) for i in order if np.isfinite(nearest[i])][:n]


def nearest_elsewhere(
    embeddings: NDArray[np.float32], cameras: NDArray[np.str_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Squared distance from each row to the nearest sighting of another camera, shape (len(rows),).

    Infinite where there is no other camera.
    """
    squares = np.einsum("ij,ij->i", embeddings, embeddings)
    nearest = np.full(len(rows), np.inf)
    for place, row in enumerate(rows.tolist()):
        D = squares - 2.0 * (embeddings @ embeddings[row]) + squares[row]
        nearest[place] = D[cameras != cameras[row]].min(initial=np.inf)
    return nearest
