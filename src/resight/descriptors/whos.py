"""WHOS, weighted histograms of overlapping stripes: colours and edges, the centre counts most."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from resight.descriptors._parts import FeatureParts
from resight.descriptors._whos_constants import (
    BLOCK,
    HEIGHT,
    HOG_BINS,
    HOG_CELL,
    LBP_CELL,
    LBP_CODES,
    STRIPE,
    STRIPE_STEP,
    WIDTH,
    WINDOW,
    epanechnikov_mask,
    gaussian_mask,
    lbp_table,
)
from resight.errors import InputError, unknown_name
from resight.images.check import as_rgb
from resight.images.colour import GRAY_WEIGHTS, Floats, Image
from resight.images.resize import resize as resize_image

VERSION = 1  # raise it whenever the numbers change: stored features are then computed anew
CHANNELS = {"dagger": ("hs", "rgb", "lab", "hog", "lbp"), "star": ("hs", "rgb", "hog")}
N_STRIPES = (HEIGHT - STRIPE) // STRIPE_STEP + 1
N_COLOURS = 64
_SCALES = np.stack([np.arange(256) / 255.0, np.arange(256.0)])


def whos(image: Image, *, variant: str = "dagger", resize: bool = True) -> Floats:
    """Describe an image by weighted histograms of overlapping stripes.

    Fifteen stripes of 16 rows, every 8 rows, are described by histograms of hue and
    saturation, RGB and L*a*b*, in which pixels near the centre weigh most; HOG and local
    binary patterns describe the shape inside the border.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), RGB
    variant : {"dagger", "star"}
        "dagger": all five channels and a Gaussian mask, 5,138 features. "star": hue and
        saturation, RGB and HOG under an Epanechnikov mask, 2,960 features.
    resize : bool
        Resize to 128 x 64 first. Without it the image must have that size.

    Returns
    -------
    float64 array of shape (5138,) or (2960,)
        HS, RGB and Lab (15 stripes x 64), HOG (13 x 5 blocks x 16), LBP (58 x 3 x 7): square
        roots of histograms of length 1.

    Notes
    -----
    The authors' program is not public. The layout follows their published tables and texts,
    the parts agree to 1e-6 with a published re-implementation. The mask of "star" is our
    reading of "an Epanechnikov kernel". The clipping of HOG blocks at 1 that the authors state
    changes nothing after normalisation, so it is not there. Values of a and b beyond 110,
    where that re-implementation fails, count in the outer bins.
    A stripe without a value above 1 is converted to L*a*b* as if 1 meant white, since the
    conversion that WHOS builds on tells 0..1 from 0..255 in that way.

    References
    ----------
    G. Lisanti, I. Masi, A. D. Bagdanov, A. Del Bimbo, "Person re-identification by iterative
    re-weighted sparse ranking", IEEE TPAMI 37(8), 2015.
    G. Lisanti, S. Karaman, I. Masi, "Multichannel-kernel canonical correlation analysis for
    cross-view person re-identification", ACM TOMM 13(2), 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from resight.descriptors.whos import whos
    >>> whos(np.full((128, 64, 3), 128, np.uint8), variant="star").shape
    (2960,)
    """
    image = as_rgb(image)
    if variant not in CHANNELS:
        raise unknown_name("WHOS variant", str(variant), CHANNELS)
    if resize:
        image = resize_image(image, HEIGHT, WIDTH)
    if image.shape[:2] != (HEIGHT, WIDTH):
        raise InputError(
            f"WHOS without resizing needs {HEIGHT} x {WIDTH} pixels, not "
            f"{image.shape[0]} x {image.shape[1]}; use resize=True"
        )
    return _describe(image, variant)


def _describe(image: Image, variant: str) -> Floats:
    from resight.descriptors import _whos_kernels as compiled

    mask, table = _tables(variant)
    window = np.ascontiguousarray(image[WINDOW])
    n_channels = 3 if variant == "dagger" else 2
    return compiled.describe(image, window, mask, _SCALES, GRAY_WEIGHTS, table, n_channels)


@lru_cache(maxsize=2)
def _tables(variant: str) -> tuple[Floats, np.ndarray]:
    """Mask of the variant, (128, 64), and the 58 codes of the 256 neighbour patterns."""
    make = gaussian_mask if variant == "dagger" else epanechnikov_mask
    return make(), lbp_table()


def feature_names(variant: str = "dagger") -> list[str]:
    """Name every feature: channel, rows (and columns) of the image, bin."""
    return [name for _, _, _, name in _features(variant)]


def feature_parts(variant: str = "dagger") -> FeatureParts:
    """Say for every feature which rows and which channel it measures."""
    top, bottom, channel = zip(*(row[:3] for row in _features(variant)), strict=True)
    return FeatureParts.build(HEIGHT, CHANNELS[variant], top, bottom, channel)


def _features(variant: str) -> list[tuple[int, int, int, str]]:
    """List top, bottom, channel and name of every feature, in order."""
    rows: list[tuple[int, int, int, str]] = []
    list_features = {"hog": _hog_features, "lbp": _lbp_features}
    for index, channel in enumerate(CHANNELS[variant]):
        places = list_features.get(channel, lambda c=channel: _colour_features(c))()  # type: ignore[misc]
        rows += [(top, bottom, index, f"{channel}:{name}") for top, bottom, name in places]
    return rows


def _colour_features(channel: str) -> list[tuple[int, int, str]]:
    levels = 8 if channel == "hs" else 4
    starts = [STRIPE_STEP * stripe for stripe in range(N_STRIPES)]
    return [
        (top, top + STRIPE, f"rows{top}-{top + STRIPE}:{_colour_bin(channel, levels, i)}")
        for top in starts
        for i in range(N_COLOURS)
    ]


def _colour_bin(axes: str, levels: int, index: int) -> str:
    letters = zip(axes, range(len(axes)), strict=True)
    return "".join(f"{letter}{index // levels**place % levels}" for letter, place in letters)


def _hog_features() -> list[tuple[int, int, str]]:
    height, width = (side.stop - side.start for side in WINDOW)
    offset, size = WINDOW[0].start, BLOCK * HOG_CELL
    features = []
    for left in range(offset, offset + width - HOG_CELL, HOG_CELL):
        for top in range(offset, offset + height - HOG_CELL, HOG_CELL):
            place = f"rows{top}-{top + size}:cols{left}-{left + size}"
            for y, x, k in np.ndindex(BLOCK, BLOCK, HOG_BINS):
                features.append((top, top + size, f"{place}:cell{y}{x}:angle{k}"))
    return features


def _lbp_features() -> list[tuple[int, int, str]]:
    height, width = (side.stop - side.start for side in WINDOW)
    offset = WINDOW[0].start
    lefts = range(offset, offset + width, LBP_CELL)
    tops = range(offset, offset + height, LBP_CELL)
    return [
        (top, top + LBP_CELL,
         f"rows{top}-{top + LBP_CELL}:cols{left}-{left + LBP_CELL}:pattern{code}")
        for code in range(LBP_CODES)
        for left in lefts
        for top in tops
    ]  # fmt: skip
