"""Colours as they would look under even light: the grey world, and a multi-scale Retinex."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from resight.images.arrays import as_rgb
from resight.images.colour import Floats, Image

SIGMAS = (5.0, 20.0)
SPREAD = 3.0  # standard deviations either side of the mean that are stretched to 0..255
_LOGS = np.log(np.arange(256) + 1.0)


def grey_world(image: Image) -> Image:
    """Scale the channels of an image so that all have the same mean.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), RGB

    Returns
    -------
    uint8 array of the same shape
        The common mean is that of all three channels, rounded and clipped to 0..255. A channel
        without any light stays dark.

    References
    ----------
    G. Buchsbaum, "A spatial processor model for object colour perception", Journal of the Franklin
    Institute 310(1), 1980.

    Examples
    --------
    >>> import numpy as np
    >>> grey_world(np.full((2, 2, 3), [60, 90, 120], np.uint8))[0, 0].tolist()
    [90, 90, 90]
    """
    image = as_rgb(image)
    means = image.mean(axis=(0, 1))  # (3,)
    gains = means.mean() / np.maximum(means, 1e-9)
    return np.minimum(image * gains + 0.5, 255.0).astype(np.uint8)


def retinex(image: Image) -> Image:
    """Even out the illumination of an image.

    What the eye sees is reflectance times light, and light varies slowly: the logarithm of the
    image minus the logarithm of its blur keeps reflectance. Two blurs, of 5 and 20 pixels, are
    averaged; the result is stretched about its mean over all channels.

    An image of one colour is returned as it is.

    Notes
    -----
    The Retinex of the LOMO authors is published as a binary only, with its source withheld;
    this is not it, and no parity is claimed. What can be observed from outside differs as
    well: theirs never darkens a pixel and changes when the image is mirrored, ours darkens
    what light had brightened, and the Retinex of a mirror image is the mirror image of the
    Retinex. The stretch of three standard deviations was chosen on drawn cameras
    (`resight.datasets.synthetic`), not on any data that results are reported for.
    The blur is the recursive filter of Young and van Vliet, continued exactly beyond the
    border as if the border pixels were repeated for ever (Triggs and Sdika).

    References
    ----------
    D. J. Jobson, Z. Rahman, G. A. Woodell, "A multiscale retinex for bridging the gap between
    color images and the human observation of scenes", IEEE Transactions on Image Processing
    6(7), 1997.
    I. T. Young, L. J. van Vliet, "Recursive implementation of the Gaussian filter", Signal
    Processing 44, 1995.
    B. Triggs, M. Sdika, "Boundary conditions for Young-van Vliet recursive filtering", IEEE
    Transactions on Signal Processing 54(6), 2006.
    """
    from resight.images import _kernels as compiled  # numba is loaded only when needed

    filters, tails = _filters()
    return compiled.retinex_image(as_rgb(image), filters, tails, _LOGS, SPREAD)


@lru_cache(maxsize=1)
def _filters() -> tuple[Floats, Floats]:
    """Give the filters (2, 4) and the starts of their backward passes (2, 3, 3) of both blurs."""
    filters, tails = zip(*(coefficients(sigma) for sigma in SIGMAS), strict=True)
    return np.stack(filters), np.stack(tails)


def coefficients(sigma: float) -> tuple[Floats, Floats]:
    """Filter (gain, b1, b2, b3) of a Gaussian, and the start of its backward pass, (3, 3)."""
    q = 0.98711 * sigma - 0.96330  # Young and van Vliet, eq. 11b, sigma >= 2.5
    b0 = 1.57825 + 2.44413 * q + 1.4281 * q**2 + 0.422205 * q**3
    feedback = np.array([2.44413 * q + 2.85619 * q**2 + 1.26661 * q**3,
                         -(1.4281 * q**2 + 1.26661 * q**3), 0.422205 * q**3]) / b0  # fmt: skip
    filter_ = np.array([1.0 - feedback.sum(), *feedback])
    return filter_, _tail(filter_, n=int(40 * sigma))


def _tail(filter_: Floats, n: int) -> Floats:
    """Start of the backward pass behind the end, as weights of the last three forward values.

    Behind the end the input stays constant; with that constant subtracted the forward filter
    rings freely from its last three values, and the backward filter starts far away at zero.
    Both are linear, so three unit vectors tell everything.
    """
    gain, b1, b2, b3 = filter_
    forward = np.zeros((n + 3, 3))  # time, unit vector; the last three values come first
    forward[:3] = np.eye(3)[::-1]
    for t in range(3, n + 3):
        forward[t] = b1 * forward[t - 1] + b2 * forward[t - 2] + b3 * forward[t - 3]
    backward = np.zeros((n + 6, 3))
    for t in reversed(range(3, n + 3)):
        ahead = b1 * backward[t + 1] + b2 * backward[t + 2] + b3 * backward[t + 3]
        backward[t] = gain * forward[t] + ahead
    return backward[3:6]
