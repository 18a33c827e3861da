"""Which sightings are most worth teaching next."""

from __future__ import annotations

import numpy as np

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
    nearest = np.full(len(pool), np.inf)  # stays infinite where there is no other camera
    for place, row in enumerate(pool.tolist()):
        distances = view.index.distances(view.index.embeddings[row])
        elsewhere = view.table.cameras != view.table.cameras[row]
        nearest[place] = distances[elsewhere].min(initial=np.inf)
    order = np.argsort(-nearest, kind="stable")
    return [str(view.table.ids[pool[i]]) for i in order if np.isfinite(nearest[i])][:n]
