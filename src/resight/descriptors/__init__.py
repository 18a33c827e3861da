"""Descriptors: image in, vector out, nothing learned.

`lomo`, `gog` and `whos` are functions of one image; `LOMO`, `GOG` and `WHOS` are transformers
over many images or paths, loaded on first use because scikit-learn is slow to import.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight.descriptors.gog import gog
from resight.descriptors.lomo import lomo
from resight.descriptors.whos import whos
from resight.errors import unknown_name

if TYPE_CHECKING:
    from resight.descriptors._base import Descriptor as Descriptor
    from resight.descriptors.transformers import GOG as GOG
    from resight.descriptors.transformers import LOMO as LOMO
    from resight.descriptors.transformers import WHOS as WHOS

__all__ = ["DESCRIPTORS", "GOG", "LOMO", "WHOS", "descriptor", "gog", "lomo", "whos"]

_TRANSFORMERS = ("GOG", "LOMO", "WHOS")


def _factory(transformer: str, **fixed: Any) -> Callable[..., Descriptor]:
    def make(*, mirror: bool = False) -> Descriptor:
        module = import_module("resight.descriptors.transformers")
        return getattr(module, transformer)(mirror=mirror, **fixed)

    return make


# Names on the command line and in configuration files, and what makes the transformer.
DESCRIPTORS: dict[str, Callable[..., Descriptor]] = {
    "lomo": _factory("LOMO"),
    "lomo-dagger": _factory("LOMO", retinex=False),
    "gog": _factory("GOG"),
    "whos-star": _factory("WHOS", variant="star"),
    "whos-dagger": _factory("WHOS", variant="dagger"),
}


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
    return DESCRIPTORS[name](mirror=mirror)


def __getattr__(name: str) -> Any:
    if name not in _TRANSFORMERS:
        raise AttributeError(f"module 'resight.descriptors' has no attribute {name!r}")
    return getattr(import_module("resight.descriptors.transformers"), name)
