"""GOG, Gaussian of Gaussians: how colours and edges vary within patches, and patches in strips."""

from __future__ import annotations

import numpy as np

from resight.descriptors._base import Descriptor
from resight.errors import InputError
from resight.images import colour
from resight.images.arrays import as_rgb
from resight.images.arrays import resize as resize_image
from resight.images.colour import Floats, Image

HEIGHT, WIDTH = 128, 48
GOG_BLOCKS = (7567, 7567, 7567, 4921)  # RGB, Lab, HSV, nRnG
EPSILON = 1e-3  # regularisation of both covariances, relative to their trace
LEAST_TRACE = 0.01  # of a patch: a floor under its trace, so that flat patches are regular
N_STRIPS = 7
OFF_DIAGONAL = 1.4142  # the published program has this literal, not the square root of 2
N_ORIENTATIONS = 4
LAB_OFFSET = np.array([0.0, 50.0, 50.0])
SHARED = ("y", "M0", "M1", "M2", "M3")
COLOURS = {"rgb": tuple("RGB"), "lab": tuple("Lab"), "hsv": tuple("HSV"), "nrng": tuple("rg")}


def gog(image: Image, *, resize: bool = True, norm: bool = False) -> Floats:
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
    norm : bool
        Scale the logarithm of every patch, and that of every strip, to length 1.

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

    ``norm=True`` follows the later paper, of which only the abstract could be read: the scale of
    the matrices is normalised, and so are norms of features, against a bias of matrix descriptors.
    Scale needs nothing new, since all matrices here have determinant 1. How norms are normalised
    there could not be checked; decided was this: the norm of a logarithm is the matrix's distance
    from the identity, it is largest for flat patches, and without it every patch counts the same
    in the Gaussian of its strip, and every strip the same in the vector. No published program was
    found to compare with.

    References
    ----------
    T. Matsukawa, T. Okabe, E. Suzuki, Y. Sato, "Hierarchical Gaussian descriptor for person
    re-identification", CVPR 2016.
    T. Matsukawa, T. Okabe, E. Suzuki, Y. Sato, "Hierarchical Gaussian descriptors with application
    to person re-identification", IEEE TPAMI 42(9), 2020.

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

    return gog_fast(image, norm)


def shared_features(image: Image) -> Floats:
    """Measure what does not depend on the colour space, [y, M0, M1, M2, M3], (h, w, 5)."""
    height, width = image.shape[:2]
    features = np.empty((height, width, 1 + N_ORIENTATIONS))
    features[..., 0] = np.arange(1, height + 1)[:, None] / height
    features[..., 1:] = orientation_votes((colour.luma(image).astype(np.float64) - 16.0) / 235.0)
    return features


def orientation_votes(luma: Floats) -> Floats:
    """Share each gradient's magnitude between the two nearest of 4 orientations, (h, w, 4)."""
    framed = np.pad(luma, 1)  # zeros outside the image, so its border is an edge
    across = framed[1:-1, 2:] - framed[1:-1, :-2]
    upward = framed[:-2, 1:-1] - framed[2:, 1:-1]
    magnitude = np.sqrt(across**2 + upward**2)
    # The original takes the angle from the vertical; a full turn of 4 bins starts at -pi.
    turn = (np.arctan2(across, upward) + np.pi) * (N_ORIENTATIONS / (2.0 * np.pi))
    votes = np.maximum(1.0 - np.abs(turn[..., None] - np.arange(N_ORIENTATIONS)), 0.0)
    votes[..., 0] += np.maximum(turn - (N_ORIENTATIONS - 1), 0.0)  # a full turn is none
    votes *= magnitude[..., None]
    return votes


def colour_features(image: Image, space: str) -> Floats:
    """Express colour in about [0, 1]: rgb, lab and hsv as (h, w, 3), nrng as (h, w, 2)."""
    if space == "rgb":
        return image / 255.0
    if space == "lab":
        return (colour.lab(image) + LAB_OFFSET) / 100.0
    if space == "hsv":
        return colour.hsv(image)
    wide = image.astype(np.float64)
    total = wide[..., 0] + wide[..., 1] + wide[..., 2]
    return wide[..., :2] / np.maximum(total, 1.0)[..., None]  # black stays 0


def column_weights(columns: int) -> Floats:
    """Weight of each column of patches: a person stands in the middle.

    Columns are counted from 1, as in the published program, so that the peak lies on column
    ``columns / 2`` and the weights are not symmetric.
    """
    x = np.arange(1, columns + 1)
    return np.exp(-((x - columns / 2) ** 2) / (2 * (columns / 4) ** 2))


def logarithm(matrices: Floats) -> Floats:
    """Logarithm of symmetric positive definite matrices, from their eigenvectors."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.log(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def half_vector(matrices: Floats) -> Floats:
    """Upper triangles row by row, (..., n, n) to (..., n (n + 1) / 2); off-diagonals weighted."""
    row, column = np.triu_indices(matrices.shape[-1])
    return matrices[..., row, column] * np.where(row == column, 1.0, OFF_DIAGONAL)


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


class GOG(Descriptor):
    """Gaussians of Gaussians in four colour spaces (see `gog`): 27,622 features.

    Parameters
    ----------
    mirror : bool
        Average over the image and its mirror image.
    """

    name = "gog"
    version = 1  # raise it whenever the numbers change: stored features are then computed anew
    size = (HEIGHT, WIDTH)
    blocks = GOG_BLOCKS
    norm = False
    feature_names = staticmethod(feature_names)

    def __init__(self, *, mirror: bool = False) -> None:
        self.mirror = mirror

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image, norm=self.norm)


class NormalizedGOG(GOG):
    """GOG whose patches and strips all count the same: 27,622 features; ``norm=True`` of `gog`."""

    name = "gog-norm"
    norm = True
