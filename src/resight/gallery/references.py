"""What is usual between different people of a gallery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from resight.explanation.explainer import N_PAIRS, Explainer

if TYPE_CHECKING:
    from resight.gallery import Gallery

_SEED = 0


def gallery_explainer(gallery: Gallery) -> Explainer:
    """Make an explainer whose references are sightings of the gallery, drawn by a fixed seed."""
    view = gallery.view
    unnamed = np.flatnonzero(view.persons == "")  # whom no model has learned from
    rows = unnamed if len(unnamed) >= N_PAIRS else np.arange(len(view.table))
    if not len(rows):
        return Explainer(view.model)
    n_drawn = min(len(rows), 4 * N_PAIRS)
    drawn = np.sort(np.random.default_rng(_SEED).choice(rows, n_drawn, replace=False))
    references = gallery.features(view.table.ids[drawn].tolist()).features
    return Explainer(view.model, references, view.persons[drawn])
