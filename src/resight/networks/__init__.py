"""ONNX files that users bring: running one, and preparing images for it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resight.networks.preprocessing import Preprocessing as Preprocessing
    from resight.networks.session import Session as Session
    from resight.networks.session import Tensor as Tensor

__all__ = ["Preprocessing", "Session", "Tensor"]


def __getattr__(name: str) -> Any:
    # A search imports this room for a digest alone: the rest is loaded when it is used.
    if name not in __all__:
        raise AttributeError(f"module 'resight.networks' has no attribute {name!r}")
    home = "preprocessing" if name == "Preprocessing" else "session"
    return getattr(import_module(f"resight.networks.{home}"), name)
