"""Queries on their way into a search: images read and checked, descriptors of the right kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight.errors import InputError
from resight.gallery import crops
from resight.gallery.adding import Described
from resight.gallery.manifest import Manifest
from resight.validation import check_array

Query = str | Path | NDArray[np.uint8]


def picture_of(query: Query, standing: bool) -> NDArray[np.uint8]:
    """Read the image of a query, refusing what cannot show a person."""
    name = "the query"
    if isinstance(query, (str, Path)):
        name = str(query)
        query = images.read(crops.read(Path(query)), name, crops.MAX_PIXELS)
    picture = images.as_rgb(query)
    crops.check(picture, name, standing)
    return picture


def check_described(manifest: Manifest, described: Described, n_rows: int | None = None) -> None:
    """Refuse descriptors of another kind or shape, and values that are not finite."""
    if described.fingerprint != manifest.descriptor:
        raise InputError(
            f"these descriptors were computed by {described.fingerprint}, those of the "
            f"gallery by {manifest.descriptor}; compute them with the gallery's model"
        )
    check_array(described.features, "descriptors", (n_rows, manifest.width))
