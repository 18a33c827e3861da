"""GOG, Gaussian of Gaussians: how colours and edges vary within patches, and patches in strips."""

from __future__ import annotations

from resight.descriptors._gog_pixels import COLOURS, N_STRIPS, SHARED
from resight.errors import InputError
from resight.images.check import as_rgb
from resight.images.colour import Floats, Image
from resight.images.resize import resize as resize_image

VERSION = 1  # raise it whenever the numbers change: stored features are then computed anew
HEIGHT, WIDTH = 128, 48
GOG_BLOCKS = (7567, 7567, 7567, 4921)  # RGB, Lab, HSV, nRnG


def gog(image: Image, *, resize: bool = True) -> Floats:
    """Describe an image by a hierarchy of Gaussians in four colour spaces.

    Every pixel is measured (height, gradient orientation, colour). The Gaussian of the pixels
    of a 5 x 5 patch becomes a symmetric positive definite matrix, its logarithm a vector; the
    Gaussian of those vectors over a horizontal strip becomes a vector in the same way.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), RGB
    resize : bool
        Resize to 128 x 48 first. Without it the height must be a multiple of 16 and the width
        even; the number of features is the same for every size.

    Returns
    -------
    float64 array of shape (27622,)
        RGB (7,567), Lab (7,567), HSV (7,567) and normalised red and green (4,921). Inside a
        colour space the entries of the strips' logarithms, upper triangle row by row, each for
        the 7 strips from the top down.

    Notes
    -----
    The vector is raw: the authors subtract the mean of the training images from each colour
    space and scale it to length 1, which is what a learner's block normaliser does.
    Logarithms come from a rational approximation, not from eigenvectors; on real images the
    result is within 1e-8 of the published program's, relative to the largest entry. As there,
    off-diagonal entries are multiplied by 1.4142, not by the square root of 2, and the columns
    of a strip are weighted from 1 up, so that the descriptor of a mirrored image is another.

    References
    ----------
    T. Matsukawa, T. Okabe, E. Suzuki, Y. Sato, "Hierarchical Gaussian descriptor for person
    re-identification", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from resight.descriptors.gog import gog
    >>> gog(np.full((160, 60, 3), 128, np.uint8)).shape
    (27622,)
    """
    image = as_rgb(image)
    if resize:
        image = resize_image(image, HEIGHT, WIDTH)
    if image.shape[0] % 16 or image.shape[1] % 2:
        raise InputError(
            "GOG without resizing needs a height that is a multiple of 16 and an even width, "
            f"not {image.shape[0]} x {image.shape[1]}; use resize=True"
        )
    from resight.descriptors._gog_fast import gog_fast  # numba is loaded only when needed

    return gog_fast(image)


def feature_names() -> list[str]:
    """Name the 27,622 features: colour space, rows of the image, entry of the logarithm.

    ``"lab:rows16-48:(y.L)(M0.1)"`` is the entry of a strip's logarithm for two entries of its
    patches' logarithms, that of height and lightness and that of orientation 0 and the
    constant (its mean); ``"lab:rows16-48:(y.L)1"`` is the entry for the mean of the first.
    """
    return [
        f"{space}:rows{top}-{bottom}:{entry}"
        for space, colours in COLOURS.items()
        for patch in [[f"({entry})" for entry in _upper([*SHARED, *colours, "1"], ".")]]
        for entry in _upper([*patch, "1"])
        for top, bottom in _strips()
    ]


def _strips() -> list[tuple[int, int]]:
    """First row and row after the last of each strip: a quarter of the height, half overlapping."""
    return [(strip * HEIGHT // 8, (strip + 2) * HEIGHT // 8) for strip in range(N_STRIPS)]


def _upper(names: list[str], between: str = "") -> list[str]:
    """Name the entries of an upper triangle row by row."""
    return [f"{a}{between}{b}" for i, a in enumerate(names) for b in names[i:]]
