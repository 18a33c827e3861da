"""LOMO, local maximal occurrence: what colours and textures occur most in each strip."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.descriptors._base import Descriptor
from resight.errors import InputError
from resight.images.arrays import as_rgb
from resight.images.arrays import resize as resize_image
from resight.images.colour import GRAY_WEIGHTS, Floats, Image
from resight.images.light import retinex as apply_retinex

HEIGHT, WIDTH = 128, 48
SIDE, STEP, SCALES = 10, 5, 3  # blocks of 10 x 10 pixels every 5, on three scales
RADII = (3, 5)
N_COLOURS, N_PATTERNS = 8**3, 3**4
CHANNELS = ("hsv", "siltp3", "siltp5")

_UNIT = np.arange(256) / 255.0
_LOGS = np.log(np.arange(SIDE * SIDE + 1) + 1.0)


def lomo(image: Image, *, retinex: bool | NDArray[np.uint8] = True, resize: bool = True) -> Floats:
    """Describe an image by local maximal occurrence.

    Joint HSV histograms and two scale invariant local ternary patterns are counted in 10 x 10
    blocks; along each row of blocks only the largest count of every bin is kept, which makes
    the vector robust to a change of viewpoint.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), RGB
    retinex : bool or uint8 array of the same shape
        True takes the colours from `resight.images.light.retinex`, False from the image itself
        (LOMO-dagger), an array from that image, already processed.
    resize : bool
        Resize to 128 x 48 first. Without it the number of features depends on the height.

    Returns
    -------
    float64 array of shape (26960,)
        HSV (20,480), SILTP with radius 3 (3,240) and 5 (3,240), each of length 1; inside a
        part scale, then row of blocks from the top, then bin.

    Notes
    -----
    The authors publish their Retinex only as a binary, so ours is another one (see
    `resight.images.light`) and ``retinex=True`` does not reproduce their numbers; with their
    Retinex image given as `retinex`, and for LOMO-dagger, the vectors agree to 1e-12.
    A scale is left out where it has no block, or for a radius where it is narrower than the
    pattern; this happens only with ``resize=False``.

    References
    ----------
    S. Liao, Y. Hu, X. Zhu, S. Z. Li, "Person re-identification by local maximal occurrence
    representation and metric learning", CVPR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from resight.descriptors.lomo import lomo
    >>> lomo(np.full((160, 60, 3), 128, np.uint8), retinex=False).shape
    (26960,)
    """
    image = as_rgb(image)
    given = None if isinstance(retinex, (bool, np.bool_)) else as_rgb(retinex)
    if given is not None and given.shape != image.shape:
        raise InputError(
            f"the Retinex image has shape {given.shape}, the image {image.shape}; "
            "give both in the same size"
        )
    if resize:
        image = resize_image(image, HEIGHT, WIDTH)
        given = None if given is None else resize_image(given, HEIGHT, WIDTH)
    if min(image.shape[:2]) < SIDE:
        raise InputError(
            f"LOMO without resizing needs at least {SIDE} x {SIDE} pixels, not "
            f"{image.shape[0]} x {image.shape[1]}; use resize=True"
        )
    if given is None:
        given = apply_retinex(image) if retinex else image
    from resight.descriptors import _lomo_kernels as compiled  # numba is loaded only when needed

    starts = _starts(*image.shape[:2])
    tables = (GRAY_WEIGHTS, _UNIT, _LOGS)
    return compiled.describe(image, given, starts, SIDE, STEP, RADII, *tables)


@lru_cache(maxsize=64)
def _starts(height: int, width: int) -> NDArray[np.int64]:
    """Count the rows of blocks of each channel before each scale, (3, n_scales + 1)."""
    sizes = scale_sizes(height, width)
    return np.array([np.cumsum([0, *_rows_of_part(sizes, channel)]) for channel in CHANNELS])


def scale_sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Sizes of the scales that hold at least one block: each half of the one before."""
    sizes = [(height >> scale, width >> scale) for scale in range(SCALES)]
    return [size for size in sizes if min(size) >= SIDE]


def _rows_of_part(sizes: list[tuple[int, int]], channel: str) -> list[int]:
    """Count the rows of blocks per scale; none where the pattern is wider than the image."""
    least = 0 if channel == "hsv" else 2 * int(channel[-1]) + 1
    return [(h - SIDE) // STEP + 1 if min(h, w) >= least else 0 for h, w in sizes]


def feature_names() -> list[str]:
    """Name the 26,960 features: channel, scale, rows of the image, bin."""
    colours = [f"h{i % 8}s{i // 8 % 8}v{i // 64}" for i in range(N_COLOURS)]
    patterns = [f"e{i % 3}n{i // 3 % 3}w{i // 9 % 3}s{i // 27}" for i in range(N_PATTERNS)]
    return [
        f"{channel}:scale{scale}:rows{top}-{bottom}:{bin_}"
        for part, channel in enumerate(CHANNELS)
        for scale, top, bottom in _strips(channel)
        for bin_ in (colours if part == 0 else patterns)
    ]


def _strips(channel: str) -> list[tuple[int, int, int]]:
    """List scale, first and last row (exclusive, in the full image) of each row of blocks."""
    per_scale = _rows_of_part(scale_sizes(HEIGHT, WIDTH), channel)
    return [
        (scale, (STEP * row) << scale, (STEP * row + SIDE) << scale)
        for scale, rows in enumerate(per_scale)
        for row in range(rows)
    ]


class LOMO(Descriptor):
    """Local maximal occurrence in strips (see `lomo`): 26,960 features.

    Parameters
    ----------
    retinex : bool
        Even out the illumination first; without it this is LOMO-dagger.
    mirror : bool
        Average over the image and its mirror image.
    """

    version = 1  # raise it whenever the numbers change: stored features are then computed anew
    size = (HEIGHT, WIDTH)
    blocks = (26960,)
    allowed: ClassVar = {"retinex": (False, True)}
    feature_names = staticmethod(feature_names)

    def __init__(self, *, retinex: bool = True, mirror: bool = False) -> None:
        self.retinex, self.mirror = retinex, mirror
        self.name = "lomo" if retinex else "lomo-dagger"

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (26960,)."""
        return lomo(image, retinex=self.retinex)
