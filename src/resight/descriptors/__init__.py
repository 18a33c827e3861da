"""Descriptors: image in, vector out, nothing learned.

`lomo`, `gog` and `whos` are functions of one image; `LOMO`, `GOG` and `WHOS` are transformers
over many images or paths, as is `Network`, a user's own ONNX file. Transformers are loaded on first
use because scikit-learn is slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight.descriptors.gog import gog
from resight.descriptors.lomo import lomo
from resight.descriptors.whos import whos
from resight.errors import unknown_name

if TYPE_CHECKING:
    from resight.descriptors._base import Descriptor as Descriptor
    from resight.descriptors.network import Network as Network
    from resight.descriptors.published import PlainDescriptor
    from resight.descriptors.transformers import GOG as GOG
    from resight.descriptors.transformers import LOMO as LOMO
    from resight.descriptors.transformers import WHOS as WHOS

__all__ = ["DESCRIPTORS", "GOG", "LOMO", "WHOS", "Network", "descriptor", "gog", "lomo", "whos"]

_PUBLISHED = "resight.descriptors.transformers"

DESCRIPTORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lomo": (_PUBLISHED, "LOMO", {}),
    "lomo-dagger": (_PUBLISHED, "LOMO", {"retinex": False}),
    "gog": (_PUBLISHED, "GOG", {}),
    "gog-norm": (_PUBLISHED, "NormalizedGOG", {}),
    "whos-star": (_PUBLISHED, "WHOS", {"variant": "star"}),
    "whos-dagger": (_PUBLISHED, "WHOS", {"variant": "dagger"}),
    "gog-grey": (_PUBLISHED, "Relit", {"of": "gog", "light": "grey"}),
    "gog-retinex": (_PUBLISHED, "Relit", {"of": "gog", "light": "retinex"}),
    "lomo-dagger-grey": (_PUBLISHED, "Relit", {"of": "lomo-dagger", "light": "grey"}),
    "whos-dagger-grey": (_PUBLISHED, "Relit", {"of": "whos-dagger", "light": "grey"}),
    "whos-dagger-retinex": (_PUBLISHED, "Relit", {"of": "whos-dagger", "light": "retinex"}),
}
"""Names on the command line and in configuration files: module, class and its parameters."""


def descriptor(name: str | Network, mirror: bool = False) -> Descriptor:
    """Make the descriptor of that name.

    Parameters
    ----------
    name : str or Network
        One of `DESCRIPTORS`, or the path of an ONNX file.
    mirror : bool
        Average over each image and its mirror image.

    Examples
    --------
    >>> descriptor("whos-star").n_features
    2960
    """
    if not isinstance(name, str):
        return name.with_mirror(mirror)
    if name.endswith(".onnx"):
        from resight.descriptors.network import Network

        return Network(name, mirror=mirror)
    if name not in DESCRIPTORS:
        raise unknown_name("descriptor", name, [*DESCRIPTORS, "FILE.onnx"])
    module, class_name, params = DESCRIPTORS[name]
    made: Descriptor = getattr(import_module(module), class_name)(mirror=mirror, **params)
    return made


def plain(name: str | Network, mirror: bool = False) -> PlainDescriptor:
    """Make the descriptor of that name; a published one without scikit-learn."""
    if name not in DESCRIPTORS or DESCRIPTORS[name][0] != _PUBLISHED:
        return descriptor(name, mirror)
    from resight.descriptors import published

    _, class_name, params = DESCRIPTORS[name]
    made: PlainDescriptor = getattr(published, class_name)(mirror=mirror, **params)
    return made


def __getattr__(name: str) -> Any:
    homes = {class_name: module for module, class_name, _ in DESCRIPTORS.values()}
    homes["Network"] = "resight.descriptors.network"
    if name not in homes:
        raise AttributeError(f"module 'resight.descriptors' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
