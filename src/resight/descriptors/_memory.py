"""Keeping freed memory while images are described."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's malloc.h
_KEPT = 256 * 2**20  # bytes of freed memory that may stay with the process
_FROM_HEAP = 32 * 2**20  # arrays below come from memory that is kept; glibc allows no more


@cache
def keep_freed_memory() -> None:
    """Let glibc keep what one image's arrays took for those of the next.

    GOG takes some megabytes of temporary arrays for each image. By default glibc returns them to
    the system after each use, and getting them back takes hundreds of page faults an image: a
    fifth of the time, and most of what keeps two cores from being twice as fast as one. Other C
    libraries are left as they are.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return
    mallopt(_MMAP_THRESHOLD, _FROM_HEAP)
    mallopt(_TRIM_THRESHOLD, _KEPT)
