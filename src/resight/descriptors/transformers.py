"""The published descriptors as scikit-learn transformers over many images or paths."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from resight.descriptors._base import Descriptor
from resight.descriptors.gog import GOG_BLOCKS, gog
from resight.descriptors.gog import VERSION as GOG_VERSION
from resight.descriptors.gog import feature_names as gog_names
from resight.descriptors.lomo import VERSION as LOMO_VERSION
from resight.descriptors.lomo import feature_names as lomo_names
from resight.descriptors.lomo import lomo
from resight.descriptors.whos import VERSION as WHOS_VERSION
from resight.descriptors.whos import feature_names as whos_names
from resight.descriptors.whos import whos
from resight.images.colour import Floats, Image


class LOMO(Descriptor):
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
    version = LOMO_VERSION
    height = 128
    blocks = (26960,)
    feature_names = staticmethod(lomo_names)

    def __init__(self, *, retinex: bool = True, mirror: bool = False) -> None:
        self.retinex = retinex
        self.mirror = mirror

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return "lomo" if self.retinex else "lomo-dagger"

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (26960,)."""
        return lomo(image, retinex=self.retinex)


class GOG(Descriptor):
    """Gaussians of Gaussians in four colour spaces: 27,622 features.

    Parameters
    ----------
    mirror : bool
        Average over the image and its mirror image.

    See Also
    --------
    resight.descriptors.gog : the function of one image, with the reference.
    """

    name = "gog"
    version = GOG_VERSION
    height = 128
    blocks = GOG_BLOCKS
    feature_names = staticmethod(gog_names)

    def __init__(self, *, mirror: bool = False) -> None:
        self.mirror = mirror

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image)


class WHOS(Descriptor):
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
    version = WHOS_VERSION
    height = 128

    def __init__(self, *, variant: str = "dagger", mirror: bool = False) -> None:
        self.variant = variant
        self.mirror = mirror

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return f"whos-{self.variant}"

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks that are centred and scaled separately before learning."""
        return (5138,) if self.variant == "dagger" else (2960,)

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (5138,) or (2960,)."""
        return whos(image, variant=self.variant)

    def feature_names(self) -> list[str]:
        """Name every feature: channel, rows (and columns), bin."""
        return whos_names(self.variant)
