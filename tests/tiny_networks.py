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
