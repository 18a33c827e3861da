"""Files of every kind are read as they look, or refused with their reason."""

from __future__ import annotations

import os
import struct
import threading
import time
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from resight.errors import InputError
from resight.images import read


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (20, 10, 3), np.uint8)


def _save(path: Path, pixels: np.ndarray, **options: object) -> Path:
    Image.fromarray(pixels).save(path, **options)
    return path


def test_png_is_read_exactly(tmp_path: Path, pixels: np.ndarray) -> None:
    for name in ("a.png", "Müller 人 🚶.png"):
        got = read(_save(tmp_path / name, pixels))
        np.testing.assert_array_equal(got, pixels)
        assert got.dtype == np.uint8
        assert got.flags.writeable


def test_streams_and_text_paths_are_read(tmp_path: Path, pixels: np.ndarray) -> None:
    path = _save(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(read(str(path)), pixels)
    np.testing.assert_array_equal(read(BytesIO(path.read_bytes())), pixels)
    np.testing.assert_array_equal(read(path.read_bytes()), pixels)
    assert read(pixels) is pixels  # checked only


@pytest.mark.parametrize(("orientation", "turn"), [(3, 2), (6, 3), (8, 1)])
def test_exif_orientation_turns_upright(
    tmp_path: Path, pixels: np.ndarray, orientation: int, turn: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = _save(tmp_path / "a.png", pixels, exif=exif)
    np.testing.assert_array_equal(read(path), np.rot90(pixels, turn))


def test_gray_is_repeated(tmp_path: Path, pixels: np.ndarray) -> None:
    path = _save(tmp_path / "a.png", pixels[..., 0])
    np.testing.assert_array_equal(read(path), np.repeat(pixels[..., :1], 3, axis=2))


def test_black_and_white_is_read(tmp_path: Path, pixels: np.ndarray) -> None:
    path = _save(tmp_path / "a.png", pixels[..., 0] > 127)
    np.testing.assert_array_equal(read(path)[..., 0], np.where(pixels[..., 0] > 127, 255, 0))


def test_transparent_pixels_are_shown_on_white(tmp_path: Path, pixels: np.ndarray) -> None:
    alpha = np.full((20, 10, 1), 255, np.uint8)
    alpha[:5] = 0
    got = read(_save(tmp_path / "a.png", np.concatenate([pixels, alpha], axis=2)))
    assert (got[:5] == 255).all()
    np.testing.assert_array_equal(got[5:], pixels[5:])


def test_palette_with_transparency_is_read(tmp_path: Path) -> None:
    picture = Image.new("P", (4, 3))
    picture.putpalette([10, 20, 30, 40, 50, 60])
    picture.putpixel((0, 0), 1)
    picture.save(tmp_path / "a.png", transparency=0)
    got = read(tmp_path / "a.png")
    assert got[0, 0].tolist() == [40, 50, 60]
    assert got[1, 1].tolist() == [255, 255, 255]


def test_cmyk_is_converted(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg", quality=95)
    red, green, blue = read(tmp_path / "a.jpg")[4, 4].tolist()
    assert red > 250
    assert max(green, blue) < 5


def test_one_pixel_is_an_image(tmp_path: Path, pixels: np.ndarray) -> None:
    assert read(_save(tmp_path / "a.png", pixels[:1, :1])).shape == (1, 1, 3)


def _png_header(width: int, height: int, depth: int = 8) -> bytes:
    """A PNG that declares a size and holds almost nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(b"\0" * 64))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8_001, 10_000, 20_000, 60_000])
def test_a_decompression_bomb_is_refused_by_its_declared_size(tmp_path: Path, side: int) -> None:
    (tmp_path / "bomb.png").write_bytes(_png_header(side, side))
    with pytest.raises(InputError, match=r"bomb\.png.*64,000,000"):
        read(tmp_path / "bomb.png")


def test_sixteen_bits_are_refused(tmp_path: Path) -> None:
    deep = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(deep).save(tmp_path / "gray.png")
    (tmp_path / "colour.png").write_bytes(_png_header(4, 4, depth=16))
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "float.tif")
    for name in ("gray.png", "colour.png", "float.tif"):
        with pytest.raises(InputError, match="more than 8 bits"):
            read(tmp_path / name)


def test_animations_are_refused(tmp_path: Path, pixels: np.ndarray) -> None:
    frames = [Image.fromarray(pixels), Image.fromarray(255 - pixels)]
    for name in ("a.webp", "a.png", "a.tif"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
        with pytest.raises(InputError, match="several pages"):
            read(tmp_path / name)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_files_are_refused(
    tmp_path: Path, pixels: np.ndarray, suffix: str, share: float
) -> None:
    path = _save(tmp_path / f"a.{suffix}", np.tile(pixels, (4, 4, 1)))
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=rf"a\.{suffix} is (damaged|not an image)"):
        read(path)


def test_no_cut_of_a_png_gives_wrong_pixels(tmp_path: Path, pixels: np.ndarray) -> None:
    data = _save(tmp_path / "a.png", pixels[:4, :4]).read_bytes()
    for length in range(1, len(data)):
        try:
            got = read(BytesIO(data[:length]))
        except InputError:
            continue
        np.testing.assert_array_equal(got, pixels[:4, :4])  # only the end marker was cut off


def test_other_things_than_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "folder.png").mkdir()
    cases = {
        "empty.png": "0 bytes",
        "text.png": "not an image",
        "folder.png": "is a folder",
        "missing.png": "does not exist",
    }
    for name, reason in cases.items():
        with pytest.raises(InputError, match=reason):
            read(tmp_path / name)
    with pytest.raises(InputError, match="not as int"):
        read(7)  # type: ignore[arg-type]


def test_bytes_are_called_by_the_name_given() -> None:
    for content, words in ((b"", "door.png is empty"), (b"text", "door.png is not an image")):
        with pytest.raises(InputError, match=words):
            read(content, "door.png")
    with pytest.raises(InputError, match="not as int"):
        read(3)  # type: ignore[arg-type]


def test_formats_are_named_one_by_one(tmp_path: Path, pixels: np.ndarray) -> None:
    """Pillow knows dozens, some of which it hands to other programs, whatever the name says."""
    for kind in ("PNG", "JPEG", "BMP", "WEBP", "TIFF"):
        assert read(_saved(pixels, kind)).shape == pixels.shape
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 128\n%%EndComments\nshowpage\n"
    for content in (eps, *(_saved(pixels, kind) for kind in ("GIF", "PPM", "TGA", "ICO"))):
        with pytest.raises(InputError, match="use PNG, JPEG, BMP, WebP or TIFF"):
            read(content, "a.png")


def _saved(pixels: np.ndarray, kind: str) -> bytes:
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def test_pipes_and_devices_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for name in ("pipe.png", "zero.png"):
        with pytest.raises(InputError, match="not a regular file"):
            read(tmp_path / name)


def test_two_large_pictures_are_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight at once took nine gigabytes."""
    from concurrent.futures import ThreadPoolExecutor

    content = _saved(np.zeros((2000, 1100, 3), np.uint8), "PNG")
    small = _saved(np.zeros((20, 11, 3), np.uint8), "PNG")
    now, most, lock, plain = 0, 0, threading.Lock(), ImageOps.exif_transpose

    def counted(picture: Image.Image, **options: Any) -> Image.Image | None:
        nonlocal now, most
        if picture.width > 11:
            with lock:
                now, most = now + 1, max(most, now + 1)
            time.sleep(0.02)
            with lock:
                now -= 1
        return plain(picture, **options)

    monkeypatch.setattr(ImageOps, "exif_transpose", counted)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(read, [content, small] * 8))
    assert most == 2


def _jpeg(pixels: np.ndarray, **options: Any) -> bytes:
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", **options)
    return stream.getvalue()


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("size", [(128, 64), (127, 63), (1, 1), (17, 300)])
def test_a_jpeg_has_the_pixels_of_pillow(
    size: tuple[int, int], progressive: bool, subsampling: int
) -> None:
    coarse = np.random.default_rng(sum(size)).integers(0, 256, (9, 7, 3), np.uint8)
    picture = np.asarray(Image.fromarray(coarse).resize(size[::-1]))
    for quality in (10, 75, 95):
        options = {"quality": quality, "subsampling": subsampling, "progressive": progressive}
        content = _jpeg(picture, **options)
        expected = np.asarray(Image.open(BytesIO(content)))
        np.testing.assert_array_equal(read(content), expected)
        assert read(content).flags.writeable


def test_a_jpeg_with_exif_is_turned_and_a_cut_off_one_is_refused(pixels: np.ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    plain = _jpeg(pixels, quality=90)
    turned = read(_jpeg(pixels, quality=90, exif=exif))
    np.testing.assert_array_equal(turned, np.rot90(read(plain), 3))
    for end in (3, 20, len(plain) // 2, len(plain) - 2):
        with pytest.raises(InputError, match=r"damaged or truncated|not an image"):
            read(plain[:end])
    with pytest.raises(InputError, match="20 pixels: more than 100"):
        read(plain, most=100)
