"""Describing many images: order, failures, memory, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from resight.descriptors import describing, descriptor
from resight.descriptors._base import Joined
from resight.descriptors.describing import BATCH, extract, stream
from resight.errors import InputError

BAD = 255


class Toy:
    """A descriptor of the first pixel; calls `function` with it."""

    name = "toy"
    fingerprint = "toy-1"

    def __init__(self, n_features: int, function: Callable[[int], np.ndarray]) -> None:
        self.n_features = n_features
        self.function = function

    def describe(self, image: np.ndarray) -> np.ndarray:
        return self.function(int(image[0, 0, 0]))


def _double(value: int) -> np.ndarray:
    if value == BAD:
        raise InputError("it is bad")
    return np.array([value, 2.0 * value])


TWICE = Toy(2, _double)


def pixels_of(values: Iterable[int]) -> list[np.ndarray]:
    return [np.full((1, 1, 3), value % 256, np.uint8) for value in values]


@pytest.mark.parametrize("n_jobs", [None, -1, 1, 3])
@pytest.mark.parametrize("n_images", [0, 1, BATCH, 5 * BATCH + 3])
def test_rows_come_in_the_order_given(n_images: int, n_jobs: int | None) -> None:
    values = list(range(n_images))
    result = extract(TWICE, pixels_of(values), n_jobs=n_jobs)
    want = np.array([[v, 2 * v] for v in values], np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(result.features, want)
    np.testing.assert_array_equal(result.kept, values)
    assert result.features.dtype == np.float32


def test_bad_images_are_collected_with_their_reason() -> None:
    result = extract(TWICE, pixels_of([1, BAD, 3, BAD] * 10), "collect", 2)
    assert result.features[:, 0].tolist() == [1, 3] * 10
    assert result.kept.tolist() == list(range(0, 40, 2))
    assert [f.row for f in result.failures] == list(range(1, 40, 2))
    assert result.failures[0] == (1, "image 1", "it is bad")


def test_nothing_but_failures() -> None:
    result = extract(TWICE, pixels_of([BAD] * 20), "collect", 2)
    assert result.features.shape == (0, 2)
    assert len(result.failures) == 20


def test_an_unforeseen_error_is_collected_with_its_type() -> None:
    inverse = Toy(1, lambda value: np.array([1 // value]))
    result = extract(inverse, pixels_of([1, 0]), "collect", 1)
    assert result.failures[0].reason.startswith("ZeroDivisionError")


@pytest.mark.parametrize(
    ("vector", "words"),
    [(np.zeros(3), r"toy gave shape \(3,\) instead of \(2,\)"), (np.full(2, np.nan), "not finite")],
)
def test_a_descriptor_that_gives_nonsense_is_refused(vector: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        extract(Toy(2, lambda value: vector), pixels_of([1]))


def test_the_first_bad_image_raises() -> None:
    with pytest.raises(InputError, match="image 2: it is bad"):
        list(stream(TWICE, pixels_of([1, 2, BAD, BAD]), n_jobs=2))


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="Valid: collect, raise"):
        extract(TWICE, pixels_of([1]), "ignore")
    for n_jobs in (0, -2):
        with pytest.raises(InputError, match="at least 1"):
            extract(TWICE, pixels_of([1]), n_jobs=n_jobs)


def test_only_a_few_images_are_in_flight() -> None:
    """Nobody reads on: then nobody describes on, whatever the number of images."""
    described = []

    def note(value: int) -> np.ndarray:
        described.append(value)
        return np.zeros(1)

    chunks = stream(Toy(1, note), pixels_of(range(10_000)), n_jobs=2)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert len(described) <= 6 * BATCH


def test_threads_work_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def meet(value: int) -> np.ndarray:
        if value % BATCH == 0:
            meeting.wait()  # passes only when two batches run at the same time
        return np.zeros(1)

    assert len(list(stream(Toy(1, meet), pixels_of(range(2 * BATCH)), n_jobs=2))) == 2


def test_libraries_start_no_threads_of_their_own() -> None:
    import cv2
    from threadpoolctl import threadpool_info

    found: list[Any] = []

    def note(value: int) -> np.ndarray:
        found.append((cv2.getNumThreads(), *(one["num_threads"] for one in threadpool_info())))
        return np.zeros(1)

    cv2.setNumThreads(2)
    extract(Toy(1, note), pixels_of(range(3)), n_jobs=1)
    assert len(found) == 3
    assert {threads for one in found for threads in one} == {1}
    assert cv2.getNumThreads() == 2


def test_joined_descriptors_are_side_by_side() -> None:
    both = Joined((TWICE, Toy(1, lambda value: np.array([value + 0.5]))))
    assert (both.name, both.n_features) == ("toy+toy", 3)
    np.testing.assert_array_equal(extract(both, pixels_of([7])).features, [[7, 14, 7.5]])


def test_many_features_go_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describing, "IN_MEMORY", 100)
    result = extract(TWICE, pixels_of([1, BAD, 5] * 30), "collect", 2)
    assert isinstance(result.features, np.memmap)
    assert result.features[:, 0].tolist() == [1, 5] * 30
    assert extract(TWICE, pixels_of([BAD] * 99), "collect", 2).features.shape == (0, 2)


def test_files_arrays_and_bad_files_together(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "人.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    whos = descriptor("whos-star")
    sources = [tmp_path / "人.png", pixels, tmp_path / "broken.png", pixels[..., 0], tmp_path]
    result = whos.extract(sources, on_error="collect")
    assert result.kept.tolist() == [0, 1]
    np.testing.assert_array_equal(result.features[0], result.features[1])
    assert [f.path for f in result.failures] == [
        str(tmp_path / "broken.png"), "image 3", str(tmp_path)
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"broken\.png"):
        whos.transform(sources)
    with pytest.raises(InputError, match="image 1: an image must have shape"):
        whos.transform([pixels, pixels[..., 0]])
