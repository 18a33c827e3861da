"""Everything between a file and an array: reading, resizing, colour spaces, even light."""

from __future__ import annotations

from resight.images.arrays import as_rgb, cut
from resight.images.reading import MAX_BYTES, MAX_PIXELS, read

__all__ = ["MAX_BYTES", "MAX_PIXELS", "VERSION", "as_rgb", "cut", "read"]

# Raise it whenever reading, resizing or a colour conversion gives other numbers: every
# descriptor's fingerprint contains it, so that stored features are computed anew.
VERSION = 1
