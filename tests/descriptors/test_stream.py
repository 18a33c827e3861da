"""Describing many images: order, failures, memory, threads."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.descriptors import _stream, descriptor
from resight.descriptors._stream import BATCH, gather, stream
from resight.errors import InputError


def _double(value: float) -> np.ndarray:
    if value < 0:
        raise InputError(f"{value} is negative")
    return np.array([value, 2.0 * value])


@pytest.mark.parametrize("n_jobs", [None, -1, 1, 3])
@pytest.mark.parametrize("n_images", [0, 1, BATCH, 5 * BATCH + 3])
def test_rows_come_in_the_order_given(n_images: int, n_jobs: int | None) -> None:
    values = list(range(n_images))
    result = gather(stream(_double, values, 2, "raise", n_jobs), n_images, 2)
    want = np.array([[v, 2 * v] for v in values], np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(result.features, want)
    np.testing.assert_array_equal(result.kept, values)
    assert result.features.dtype == np.float32


def test_bad_images_are_collected_with_their_reason() -> None:
    values = [1, -2, 3, -4] * 10
    result = gather(stream(_double, values, 2, "collect", 2), len(values), 2)
    assert result.features[:, 0].tolist() == [1, 3] * 10
    assert result.kept.tolist() == list(range(0, 40, 2))
    assert [f.index for f in result.failures] == list(range(1, 40, 2))
    assert result.failures[0].source == "-2"
    assert result.failures[0].reason == "-2 is negative"


def test_nothing_but_failures() -> None:
    result = gather(stream(_double, [-1] * 20, 2, "collect", 2), 20, 2)
    assert result.features.shape == (0, 2)
    assert len(result.failures) == 20


def test_an_unforeseen_error_is_collected_with_its_type() -> None:
    def divide(value: int) -> np.ndarray:
        return np.array([1 // value])

    result = gather(stream(divide, [1, 0], 1, "collect", 1), 2, 1)
    assert result.failures[0].reason.startswith("ZeroDivisionError")


def test_the_first_bad_image_raises() -> None:
    with pytest.raises(InputError, match="-5 is negative"):
        list(stream(_double, [1, 2, -5, -6], 2, "raise", 2))


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="Valid: collect, raise"):
        stream(_double, [1], 2, "ignore", None)
    for n_jobs in (0, -2):
        with pytest.raises(InputError, match="at least 1"):
            stream(_double, [1], 2, "raise", n_jobs)


def test_only_a_few_images_are_in_flight() -> None:
    """Nobody reads on: then nobody describes on, whatever the number of images."""
    described = []

    def note(value: int) -> np.ndarray:
        described.append(value)
        return np.zeros(1)

    chunks = stream(note, range(10_000), 1, "raise", 2)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert len(described) <= 6 * BATCH


def test_threads_work_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def meet(value: int) -> np.ndarray:
        if value % BATCH == 0:
            meeting.wait()  # passes only when two batches run at the same time
        return np.zeros(1)

    assert len(list(stream(meet, range(2 * BATCH), 1, "raise", 2))) == 2


def test_many_features_go_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "IN_MEMORY", 100)
    values = [1, -1, 5] * 30
    result = gather(stream(_double, values, 2, "collect", 2), len(values), 2)
    assert isinstance(result.features, np.memmap)
    assert result.features[:, 0].tolist() == [1, 5] * 30
    assert gather(stream(_double, [-1] * 99, 2, "collect", 2), 99, 2).features.shape == (0, 2)


def test_files_arrays_and_bad_files_together(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "人.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    whos = descriptor("whos-star")
    sources = [tmp_path / "人.png", pixels, tmp_path / "broken.png", pixels[..., 0], tmp_path]
    result = whos.extract(sources, on_error="collect")
    assert result.kept.tolist() == [0, 1]
    np.testing.assert_array_equal(result.features[0], result.features[1])
    assert [f.source for f in result.failures] == [
        str(tmp_path / "broken.png"), "image 3", str(tmp_path)
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"broken\.png"):
        whos.transform(sources)
    with pytest.raises(InputError, match="image 1: an image must have shape"):
        whos.transform([pixels, pixels[..., 0]])
