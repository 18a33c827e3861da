"""The published descriptors as scikit-learn transformers over many images or paths."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from resight.descriptors import published
from resight.descriptors._base import Descriptor


class LOMO(published.LOMO, Descriptor):
    """Local maximal occurrence of colours and textures in strips: 26,960 features.

    Parameters
    ----------
    retinex : bool
        Even out the illumination first; without it this is LOMO-dagger.
    mirror : bool
        Average over the image and its mirror image.

    See Also
    --------
    resight.descriptors.lomo : the function of one image, with the reference.

    Examples
    --------
    >>> import numpy as np
    >>> from resight.descriptors import LOMO
    >>> LOMO(retinex=False).transform([np.full((128, 48, 3), 99, np.uint8)]).shape
    (1, 26960)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "retinex": ["boolean"],
        **Descriptor._parameter_constraints,
    }


class GOG(published.GOG, Descriptor):
    """Gaussians of Gaussians in four colour spaces: 27,622 features.

    Parameters
    ----------
    mirror : bool
        Average over the image and its mirror image.

    See Also
    --------
    resight.descriptors.gog : the function of one image, with the reference.
    """


class NormalizedGOG(published.NormalizedGOG, Descriptor):
    """GOG whose patches and strips all count the same: 27,622 features; ``norm=True`` of `gog`."""


class WHOS(published.WHOS, Descriptor):
    """Weighted histograms of overlapping stripes, with HOG: 5,138 or 2,960 features.

    Parameters
    ----------
    variant : {"dagger", "star"}
        "dagger" has L*a*b* and local binary patterns on top and a Gaussian mask.
    mirror : bool
        Average over the image and its mirror image.

    See Also
    --------
    resight.descriptors.whos : the function of one image, with the reference.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "variant": [StrOptions({"dagger", "star"})],
        **Descriptor._parameter_constraints,
    }


class Relit(published.Relit, Descriptor):
    """A descriptor of images whose light was evened out first.

    Parameters
    ----------
    of : str
        Name of the descriptor.
    light : {"grey", "retinex"}
        What is done to an image once it has the descriptor's size: `resight.images.grey_world` or
        `resight.images.retinex`.
    mirror : bool
        Average over the image and its mirror image.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "of": [str],
        "light": [StrOptions({"grey", "retinex"})],
        **Descriptor._parameter_constraints,
    }
