"""Descriptors: image in, vector out, nothing learned.

`lomo`, `gog` and `whos` are functions of one image; `LOMO`, `GOG` and `WHOS` are transformers
over many images or paths, loaded on first use because scikit-learn is slow to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from resight.descriptors.gog import gog
from resight.descriptors.lomo import lomo
from resight.descriptors.whos import whos
from resight.errors import unknown_name

if TYPE_CHECKING:
    from resight.descriptors._base import Descriptor as Descriptor
    from resight.descriptors.transformers import GOG as GOG
    from resight.descriptors.transformers import LOMO as LOMO
    from resight.descriptors.transformers import WHOS as WHOS

__all__ = [
    "DESCRIPTORS",
    "GOG",
    "LOMO",
    "WHOS",
    "DescriptorSpec",
    "descriptor",
    "gog",
    "lomo",
    "whos",
]

_PUBLISHED = "resight.descriptors.transformers"


class DescriptorSpec(NamedTuple):
    """Where the transformer of a named descriptor lives, and its parameters."""

    module: str
    class_name: str
    params: Mapping[str, Any] = MappingProxyType({})


DESCRIPTORS: dict[str, DescriptorSpec] = {
    "lomo": DescriptorSpec(_PUBLISHED, "LOMO"),
    "lomo-dagger": DescriptorSpec(_PUBLISHED, "LOMO", {"retinex": False}),
    "gog": DescriptorSpec(_PUBLISHED, "GOG"),
    "whos-star": DescriptorSpec(_PUBLISHED, "WHOS", {"variant": "star"}),
    "whos-dagger": DescriptorSpec(_PUBLISHED, "WHOS", {"variant": "dagger"}),
}
"""One line for each name on the command line and in configuration files."""


def descriptor(name: str, mirror: bool = False) -> Descriptor:
    """Make the descriptor of that name.

    Parameters
    ----------
    name : {"lomo", "lomo-dagger", "gog", "whos-star", "whos-dagger"}
    mirror : bool
        Average over each image and its mirror image.

    Examples
    --------
    >>> descriptor("whos-star").n_features
    2960
    """
    if name not in DESCRIPTORS:
        raise unknown_name("descriptor", str(name), DESCRIPTORS)
    module, class_name, params = DESCRIPTORS[name]
    made: Descriptor = getattr(import_module(module), class_name)(mirror=mirror, **params)
    return made


def __getattr__(name: str) -> Any:
    homes = {spec.class_name: spec.module for spec in DESCRIPTORS.values()}
    if name not in homes:
        raise AttributeError(f"module 'resight.descriptors' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
