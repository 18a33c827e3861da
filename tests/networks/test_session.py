from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError
from resight.networks.session import Session
from tiny_networks import embedder, node, save


def test_a_session_computes_the_graph(tmp_path: Path) -> None:
    session = Session(embedder(tmp_path / "n.onnx", metadata={"author": "me"}))
    assert session.input.shape == (None, 3, 64, 32)
    assert [output.shape for output in session.outputs] == [(None, 8)]
    assert session.metadata == {"author": "me"}
    batch = np.random.default_rng(1).random((5, 3, 64, 32), np.float32)
    cells = batch.reshape(5, 3, 4, 16, 2, 16).mean((3, 5)).reshape(5, 24)
    matrix = np.random.default_rng(0).normal(size=(24, 8)).astype(np.float32)
    [vectors] = session.run(batch)
    assert np.allclose(vectors, cells @ matrix, atol=1e-5)


def test_half_precision_and_fixed_batches(tmp_path: Path) -> None:
    session = Session(embedder(tmp_path / "n.onnx", dtype=np.float16, batch=2))
    assert session.input.shape[0] == 2
    [vectors] = session.run(np.ones((2, 3, 64, 32), np.float32))
    assert vectors.dtype == np.float16
    with pytest.raises(InputError, match=r"failed on a batch of shape \(3, .*2 x 3 x 64 x 32"):
        session.run(np.ones((3, 3, 64, 32), np.float32))


def test_files_that_cannot_be_run(tmp_path: Path) -> None:
    def refusal(file: Path) -> str:
        with pytest.raises(InputError) as caught:
            Session(file)
        return str(caught.value)

    whole, file = embedder(tmp_path / "whole.onnx").read_bytes(), tmp_path / "n.onnx"
    assert "no network" in refusal(tmp_path / "absent.onnx")
    for content in (b"", b"no network at all", whole[: len(whole) // 2]):
        file.write_bytes(content)
        assert "is not an ONNX file, or it is truncated" in refusal(file)
    save(file, [node("Nope", "images", "y")], {}, (1, 3, 4, 4), {"y": (1, 3, 4, 4)})
    assert "an operator that onnxruntime does not have" in refusal(file)
    options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    embedder(file, **options)
    (tmp_path / "w.bin").write_bytes(b"short")
    assert "a second file that is truncated" in refusal(file)
    (tmp_path / "w.bin").unlink()
    assert "a second file that is missing" in refusal(file)


@pytest.mark.parametrize(
    ("shape", "inputs", "words"),
    [
        ((1, 4, 4), ("images",), "not a batch of images"),
        ((1, 1, 4, 4), ("images",), "not a batch of images"),
        ((1, 3, 4, 4), ("images", "others"), "must have one input"),
    ],
)
def test_networks_that_take_something_else(
    tmp_path: Path, shape: tuple[int, ...], inputs: tuple[str, ...], words: str
) -> None:
    nodes = [node("Relu", "images", "y")]
    file = save(tmp_path / "n.onnx", nodes, {}, shape, {"y": shape}, inputs=inputs)
    with pytest.raises(InputError, match=words):
        Session(file)


def test_without_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = embedder(tmp_path / "n.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails
    with pytest.raises(InputError, match=r"pip install 'resight\[network\]'"):
        Session(file)
