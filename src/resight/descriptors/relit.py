"""Descriptors of images whose light was evened out first."""

from __future__ import annotations

from typing import ClassVar

from resight import descriptors
from resight.descriptors._base import Descriptor
from resight.images.check import as_rgb
from resight.images.colour import Floats, Image
from resight.images.grey_world import grey_world
from resight.images.resize import resize
from resight.images.retinex import retinex

LIGHTS = {"grey": grey_world, "retinex": retinex}


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

    allowed: ClassVar = {"light": tuple(LIGHTS)}

    def __init__(self, *, of: str, light: str, mirror: bool = False) -> None:
        self.of, self.light, self.mirror = of, light, mirror
        self.name = f"{of}-{light}"
        self._inner = descriptors.descriptor(of)
        self.size, self.blocks = self._inner.size, self._inner.blocks

    @property
    def version(self) -> int:  # type: ignore[override]  # a property, so that it is never stale
        """Number of the algorithm; that of the light is the version of all images."""
        return self._inner.version

    def describe_once(self, image: Image) -> Floats:
        """Describe one image under even light."""
        return self._inner.describe_once(LIGHTS[self.light](resize(as_rgb(image), *self.size)))

    def feature_names(self) -> list[str]:
        """Name every feature as the descriptor does."""
        return self._inner.feature_names()
