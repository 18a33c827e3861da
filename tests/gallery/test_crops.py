from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.errors import InputError
from resight.gallery import crops
from resight.images import read


def encoded(picture: np.ndarray, form: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, form)
    return buffer.getvalue()


@pytest.fixture
def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (64, 32, 3), dtype=np.uint8)


def test_jpeg_and_png_are_kept_as_they_are_and_others_lossless(picture: np.ndarray) -> None:
    for form, same in (("PNG", True), ("JPEG", True), ("BMP", False), ("TIFF", False)):
        content = encoded(picture, form)
        stored, _ = crops.keep(content, read(content), None)
        assert (stored == content) is same
        assert np.array_equal(read(stored), read(content))
        assert crops.image_type(stored) in ("image/png", "image/jpeg")


def test_a_small_file_cannot_fill_the_memory() -> None:
    huge = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(huge, "PNG")
    assert len(huge.getvalue()) < 200_000
    with pytest.raises(InputError, match=r"bomb.png.*64,000,000"):
        read(huge.getvalue(), "bomb.png")


def test_large_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "film.png"
    with path.open("wb") as stream:
        stream.truncate(10**9)  # sparse: no disk is filled
    with pytest.raises(InputError, match=r"953\.7 MB; the limit is 20 MB"):
        crops.read(path)


@pytest.mark.parametrize(
    ("shape", "words"),
    [((20, 60, 3), "too small"), ((40, 100, 3), "wider than tall"), ((40, 8, 3), "too small")],
)
def test_no_person_fits(shape: tuple[int, ...], words: str) -> None:
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    with pytest.raises(InputError, match=words):
        crops.check(picture, "it")


def test_a_wall_is_no_person() -> None:
    with pytest.raises(InputError, match="a single colour"):
        crops.check(np.full((128, 64, 3), 77, np.uint8))


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"x" * 99, b"<svg/>"])
def test_what_is_no_image(content: bytes) -> None:
    with pytest.raises(InputError, match=r"not an image|damaged|0 bytes"):
        read(content)


def test_a_box_outside_the_image(picture: np.ndarray) -> None:
    with pytest.raises(InputError, match="outside the image"):
        crops.keep(b"", picture, np.array([100, 0, 5, 5]))
