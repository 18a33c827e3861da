"""Descriptors: image in, vector out, nothing learned.

`lomo`, `gog` and `whos` are functions of one image; `LOMO`, `GOG` and `WHOS` are transformers
over many images or paths, as is `Network`, a user's own ONNX file, which is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight.descriptors._base import Descriptor as Descriptor
from resight.descriptors.gog import GOG, gog
from resight.descriptors.lomo import LOMO, lomo
from resight.descriptors.whos import WHOS, whos
from resight.errors import unknown_name

if TYPE_CHECKING:
    from resight.descriptors.network import Network as Network

__all__ = ["DESCRIPTORS", "GOG", "LOMO", "WHOS", "Network", "descriptor", "gog", "lomo", "whos"]

_HERE = "resight.descriptors"
_EVEN = ("grey", "retinex")
_LIGHTS = {"gog": _EVEN, "lomo-dagger": ("grey",), "whos-dagger": _EVEN}

DESCRIPTORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lomo": (f"{_HERE}.lomo", "LOMO", {}),
    "lomo-dagger": (f"{_HERE}.lomo", "LOMO", {"retinex": False}),
    "gog": (f"{_HERE}.gog", "GOG", {}),
    "gog-norm": (f"{_HERE}.gog", "NormalizedGOG", {}),
    "whos-star": (f"{_HERE}.whos", "WHOS", {"variant": "star"}),
    "whos-dagger": (f"{_HERE}.whos", "WHOS", {"variant": "dagger"}),
    **{
        f"{of}-{light}": (f"{_HERE}._base", "Relit", {"of": of, "light": light})
        for of, lights in _LIGHTS.items()
        for light in lights
    },
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
    return getattr(import_module(module), class_name)(mirror=mirror, **params)


def __getattr__(name: str) -> Any:
    homes = {class_name: module for module, class_name, _ in DESCRIPTORS.values()}
    homes["Network"] = f"{_HERE}.network"
    if name not in homes:
        raise AttributeError(f"module 'resight.descriptors' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
