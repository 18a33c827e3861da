"""ONNX files that users bring: running one, and preparing images for it."""

from resight.networks.preprocessing import Preprocessing
from resight.networks.session import Session, Tensor

__all__ = ["Preprocessing", "Session", "Tensor"]
