"""ONNX networks small enough to write down, so that tests need no file of anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16}
Axis = int | str | None


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """``node("Add", "a b", "sum")``."""
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def save(
    file: Path,
    nodes: Sequence[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    shape: Sequence[Axis],
    outputs: dict[str, Sequence[Axis]],
    *,
    inputs: Sequence[str] = ("images",),
    dtype: Any = np.float32,
    metadata: dict[str, str] | None = None,
    **options: Any,
) -> Path:
    """Write a network; axes that are None or a name may vary."""
    kind = FLOATS[np.dtype(dtype)]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, shape) for name in inputs],
        [helper.make_tensor_value_info(name, kind, axes) for name, axes in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8  # onnx writes newer ones than the oldest onnxruntime reads
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(file), **options)
    return file


def embedder(
    file: Path,
    length: int = 8,
    size: tuple[int, int] = (64, 32),
    batch: Axis = "batch",
    dtype: Any = np.float32,
    **options: Any,
) -> Path:
    """A re-identification network: average colours of 4 x 2 cells, times a fixed random matrix."""
    kernel = [size[0] // 4, size[1] // 2]
    matrix = np.random.default_rng(0).normal(size=(24, length)).astype(dtype)
    nodes = [
        node("AveragePool", "images", "cells", kernel_shape=kernel, strides=kernel),
        node("Flatten", "cells", "colours"),
        node("MatMul", "colours matrix", "vectors"),
    ]
    outputs: dict[str, Sequence[Axis]] = {"vectors": (batch, length)}
    return save(file, nodes, {"matrix": matrix}, (batch, 3, *size), outputs, dtype=dtype, **options)


def detector(
    file: Path, output: np.ndarray, size: tuple[int, int] = (96, 64), **options: Any
) -> Path:
    """A detector that answers every image with the same output."""
    nodes = [
        node("ReduceMean", "images", "mean", keepdims=0),
        node("Mul", "mean zero", "nothing"),
        node("Add", "fixed nothing", "found"),
    ]
    weights = {"fixed": output.astype(np.float32), "zero": np.zeros((), np.float32)}
    return save(file, nodes, weights, (1, 3, *size), {"found": output.shape}, **options)


def badge_detector(file: Path, size: tuple[int, int], body: tuple[int, int]) -> Path:
    """A YOLOX that finds people of one size by the red badge, 8 pixels large, in their middle."""
    cells = [(size[0] // stride) * (size[1] // stride) for stride in (8, 16, 32)]
    red = np.zeros((6, 3, 1, 1), np.float32)
    red[4, :, 0, 0] = np.array([-2, -2, 4]) / 255  # BGR: a quarter of a badge is enough
    width, height = np.log(np.array(body[::-1]) / 8)
    bias = np.array([0.5, 0.5, width, height, 0, 1], np.float32)
    # Offsets and sizes stay as they are; objectness is kept between 0 and 1.
    low, high = np.full((6, 1, 1), -9, np.float32), np.full((6, 1, 1), 9, np.float32)
    low[4], high[4] = 0, 1
    nodes = [
        node("AveragePool", "images", "pooled", kernel_shape=[8, 8], strides=[8, 8]),
        node("Conv", "pooled red bias", "values"),
        node("Max", "values low", "raised"),
        node("Min", "raised high", "limited"),
        node("Reshape", "limited shape", "columns"),
        node("Transpose", "columns", "rows", perm=[0, 2, 1]),
        node("Concat", "rows coarse", "found", axis=1),
    ]
    weights = {
        "red": red,
        "bias": bias,
        "low": low,
        "high": high,
        "shape": np.array([1, 6, cells[0]]),
        "coarse": np.zeros((1, cells[1] + cells[2], 6), np.float32),
    }
    return save(file, nodes, weights, (1, 3, *size), {"found": (1, sum(cells), 6)})
