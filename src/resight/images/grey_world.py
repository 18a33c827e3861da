"""Grey world: colours as they would look under a light that makes the whole image grey."""

from __future__ import annotations

import numpy as np

from resight.images.check import as_rgb
from resight.images.colour import Image


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
