"""The published descriptors as scikit-learn transformers over many images or paths."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from resight.descriptors import descriptor
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
from resight.images.check import as_rgb
from resight.images.colour import Floats, Image
from resight.images.grey_world import grey_world
from resight.images.resize import resize
from resight.images.retinex import retinex


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
    size = (128, 48)
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
    size = (128, 48)
    blocks = GOG_BLOCKS
    feature_names = staticmethod(gog_names)

    def __init__(self, *, mirror: bool = False) -> None:
        self.mirror = mirror

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image)


class NormalizedGOG(GOG):
    """GOG whose patches and strips all count the same: 27,622 features; ``norm=True`` of `gog`."""

    name = "gog-norm"

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image, norm=True)


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
    size = (128, 64)

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


class Relit(Descriptor):
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

    def __init__(self, *, of: str, light: str, mirror: bool = False) -> None:
        self.of = of
        self.light = light
        self.mirror = mirror

    @property
    def _plain(self) -> Descriptor:
        return descriptor(self.of)

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return f"{self.of}-{self.light}"

    @property
    def version(self) -> int:
        """Number of the algorithm; that of the light is the version of all images."""
        return self._plain.version

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks that are centred and scaled separately before learning."""
        return self._plain.blocks

    @property
    def size(self) -> tuple[int, int]:  # type: ignore[override]
        """Height and width to which images are brought."""
        return self._plain.size

    def describe_once(self, image: Image) -> Floats:
        """Describe one image under even light."""
        even = grey_world if self.light == "grey" else retinex
        return self._plain.describe_once(even(resize(as_rgb(image), *self.size)))

    def feature_names(self) -> list[str]:
        """Name every feature as the descriptor does."""
        return self._plain.feature_names()
