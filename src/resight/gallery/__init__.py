"""Stored sightings that can be searched, taught and forgotten.

>>> from resight.gallery import Gallery
>>> gallery = Gallery.open("my.gallery")  # doctest: +SKIP
"""

from resight.gallery.filters import Filter
from resight.gallery.gallery import Added, Described, Gallery
from resight.gallery.searching import Hit, Hits

__all__ = ["Added", "Described", "Filter", "Gallery", "Hit", "Hits"]
