"""Stored pictures that are the query's own: the same file, encoded again, or of another size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.gallery import crops
from resight.gallery.engines.base import Engine
from resight.gallery.reranking import Found
from resight.gallery.view import View
from resight.images import read

Rows = NDArray[np.intp]
Bools = NDArray[np.bool_]

LOOKED = 32  # nearest sightings that are compared with the query's picture
_SIZE = (16, 32)  # width and height at which pictures are compared
_MEAN, _MOST = 2.5, 30.0  # grey levels that encoding and sizing may change, on average and anywhere
_ZERO = 1e-9  # of the median distance: without pictures, equal vectors


@dataclass(frozen=True)
class Asked:
    """What is known of a query besides its embedding.

    `thumbs` are its pictures, small, (n, h, w, 3); `outside` tells whether it looks like nothing
    that the model learned from; `several` are the embeddings (n, r) of a query's several pictures.
    """

    thumbs: NDArray[np.float32] | None = None
    outside: bool = False
    several: NDArray[np.float32] | None = None


def thumb(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return a picture at the size at which pictures are compared, in float32."""
    small = cv2.resize(picture.astype(np.float32), _SIZE, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32)


def thumbs_of(contents: Sequence[bytes]) -> NDArray[np.float32] | None:
    """Return stored pictures, small; None if there are none."""
    found = [thumb(read(content)) for content in contents if content != crops.NO_IMAGE]
    return np.array(found) if found else None


def own_pictures(engine: Engine, view: View, asked: Asked, near: Found) -> Rows:
    """Return those of the nearest rows whose picture is one of the query's own."""
    if asked.thumbs is None:
        if not len(near.rows):
            return near.rows
        return near.rows[near.distances <= _ZERO * float(np.median(near.distances))]
    ids = view.table.ids[near.rows].tolist()
    images = engine.fetch(ids, "image")
    same = [sighting in images and _equal(images[sighting], asked.thumbs) for sighting in ids]
    return near.rows[np.array(same, bool)]


def without(allowed: Bools | None, rows: Rows, view: View) -> Bools | None:
    """Take rows out of those that are searched."""
    if not len(rows):
        return allowed
    rest = np.ones(len(view.table), bool) if allowed is None else allowed.copy()
    rest[rows] = False
    return rest


def _equal(content: bytes, thumbs: NDArray[np.float32]) -> bool:
    if content == crops.NO_IMAGE:
        return False
    try:
        difference = np.abs(thumb(read(content, "a stored picture")) - thumbs)
    except InputError:  # damaged: `gallery check` tells
        return False
    means, most = difference.mean(axis=(1, 2, 3)), difference.max(axis=(1, 2, 3))
    return bool(((means <= _MEAN) & (most <= _MOST)).any())
