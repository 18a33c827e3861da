"""One ONNX file in onnxruntime: on one thread, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, require_package

_DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
_BROKEN = "is not an ONNX file, or it is truncated; export or copy it again"
_ELSEWHERE = (
    "keeps its weights in a second file that is {}; copy that file {}, or export the network into "
    "one file"
)
# What onnxruntime's messages contain, and what to do about it; the first that fits is told.
_ADVICE = {
    "Protobuf parsing failed": _BROKEN,
    "No graph": _BROKEN,
    "does not have a graph": _BROKEN,  # as up to 1.23, the last one for Python 3.10
    "xternal data path": _ELSEWHERE.format("missing", "beside it"),
    "cannot get file size": _ELSEWHERE.format("missing", "beside it"),  # 1.23 likewise
    "xternal initializer": _ELSEWHERE.format("truncated", "again"),
    "not a registered function": "uses an operator that onnxruntime does not have; export it anew",
    "No Op registered": "uses an operator that onnxruntime does not have; export it anew",
    "opset": "is newer than onnxruntime; update onnxruntime, or export with an older opset",
    "IR version": "is newer than onnxruntime; update onnxruntime, or export with an older one",
}


class Tensor(NamedTuple):
    """An input or output: axes that may vary are None (the batch), unknown ones are too."""

    name: str
    shape: tuple[int | None, ...]
    dtype: np.dtype[Any] | None

    def __str__(self) -> str:
        axes = " x ".join("any" if n is None else str(n) for n in self.shape)
        return f"{self.name} ({axes})"


class Session:
    """An ONNX file that takes one batch of images, (n, 3, height, width).

    A session belongs to one process and cannot be pickled: keep the file's name and open it where
    it is used. It computes on one thread, because work is spread over processes. `metadata` are the
    key-value pairs that the exporter put into the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._session = _open(file)
        inputs = [_tensor(node) for node in self._session.get_inputs()]
        self.outputs = tuple(_tensor(node) for node in self._session.get_outputs())
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        if len(inputs) != 1:
            names = ", ".join(map(str, inputs)) or "none"
            raise InputError(f"{file} must have one input, a batch of images; it has {names}")
        [self.input] = inputs
        shape, dtype = self.input.shape, self.input.dtype
        if len(shape) != 4 or shape[1] not in (3, None) or dtype is None:
            raise InputError(
                f"the input {self.input} of {file} is not a batch of images: it needs four axes "
                "(batch, 3 channels, height, width) of floats; export the network that way"
            )

    def run(
        self, batch: NDArray[np.float32], outputs: Sequence[str] | None = None
    ) -> list[NDArray[Any]]:
        """Compute outputs, all unless named, of a batch of shape (n, 3, height, width)."""
        feed = {self.input.name: batch.astype(self.input.dtype, copy=False)}
        try:
            return list(self._session.run(outputs, feed))
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise InputError(
                f"{self.file} failed on a batch of shape {batch.shape}; its input is "
                f"{self.input}: {_short(error)}"
            ) from error


def _open(file: Path) -> Any:
    if not file.is_file():
        raise InputError(f"no network {file}; give the path of an .onnx file")
    onnxruntime = require_package("onnxruntime", "network", str(file))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 4  # what matters arrives as an exception
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class of their own
        known = (advice for sign, advice in _ADVICE.items() if sign in str(error))
        advice = next(known, "cannot be run by onnxruntime")
        raise InputError(f"{file} {advice} ({_short(error)})") from error


def _short(error: Exception) -> str:
    """Return the last, telling part of onnxruntime's message."""
    return " ".join(str(error).split(" : ")[-1].split())[-200:]


def _tensor(node: Any) -> Tensor:
    shape = tuple(n if isinstance(n, int) and n > 0 else None for n in node.shape)
    kind = _DTYPES.get(node.type)
    return Tensor(node.name, shape, None if kind is None else np.dtype(kind))
