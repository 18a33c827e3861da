"""Reading image files into RGB arrays, or saying why one cannot be used; images as data URIs."""

from __future__ import annotations

import base64
import io
import os
import struct
import threading
from contextlib import nullcontext
from typing import IO, Any

import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps

from resight.errors import InputError, ResightError
from resight.images.arrays import as_rgb
from resight.images.colour import Image
from resight.validation import check_file

# A crop of a person has a few thousand pixels; a photograph of 64 megapixels still passes.
MAX_PIXELS = 64_000_000
MAX_BYTES = 2**29  # of a file: so many pixels, not compressed, with transparency and a copy
# Named one by one: Pillow would hand others to programs such as Ghostscript.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF")
_LARGE = 2_000_000  # pixels above which pictures wait for each other: 2 at a time in a process
_decoding = threading.BoundedSemaphore(2)
_SEGMENT = struct.Struct(">BBHBHHB")  # of a JPEG: marker, length; bits, height, width, channels

Source = str | os.PathLike[str] | IO[bytes] | bytes | Image


def height_of(path: str | os.PathLike[str]) -> int:
    """Return the height that an image file states, in pixels; 0 if it cannot be read."""
    try:
        with Pillow.open(path, formats=FORMATS) as picture:
            return picture.height
    except (OSError, ValueError, Pillow.DecompressionBombError):
        return 0


def read(source: Source, name: str | None = None, most: int = MAX_PIXELS) -> Image:
    """Read one image as RGB: PNG, JPEG, BMP, WebP or TIFF.

    Parameters
    ----------
    source : path, binary stream, bytes of an image file, or RGB array, which is only checked
    name : str, optional
        What errors call it; by default its path.
    most : int
        Pixels that it may declare.

    Returns
    -------
    uint8 array of shape (height, width, 3), RGB
        Turned upright as the EXIF orientation says. Gray levels are repeated in all three
        channels, transparent pixels are shown on white, CMYK and palettes are converted.

    Raises
    ------
    InputError
        If the file does not exist, is no regular file, is empty, is no image of these formats,
        is damaged or truncated, is animated, holds 16 or more bits per channel, or declares more
        than `most` pixels; the last is found before anything is decoded.
    """
    if isinstance(source, np.ndarray):
        return as_rgb(source)
    name = name or _name(source)
    if isinstance(source, (str, os.PathLike)):
        content = check_file(source, MAX_BYTES).read_bytes()
    else:
        content = source if isinstance(source, bytes) else source.read()
    if not content:
        raise InputError(f"{name} is empty (0 bytes); copy or export it again")
    if (decoded := _plain_jpeg(content, most)) is not None:
        return decoded
    try:
        with Pillow.open(io.BytesIO(content), formats=FORMATS) as picture:
            _check_header(picture, name, most)
            with _decoding if picture.width * picture.height > _LARGE else nullcontext():
                ImageOps.exif_transpose(picture, in_place=True)
                return np.array(_to_rgb(picture))
    except ResightError:
        raise
    except Pillow.UnidentifiedImageError:
        raise InputError(
            f"{name} is not an image in a supported format; use PNG, JPEG, BMP, WebP or TIFF"
        ) from None
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):
        raise InputError(f"{name} is too large: {_limit(most)}") from None
    except MemoryError:
        raise InputError(f"{name} does not fit in memory; scale it down") from None
    except Exception as error:  # decoders raise a dozen types, all meaning a damaged file
        raise InputError(
            f"{name} is damaged or truncated ({error}); copy or export it again"
        ) from error


def data_uri(image: Image, height: int, quality: int) -> str:
    """Return an RGB image as a data URI: a JPEG of this height, in proportion."""
    shown = Pillow.fromarray(image)
    if shown.height != height:
        shown = shown.resize((max(1, round(shown.width * height / shown.height)), height))
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()


def _name(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return str(source)
    if isinstance(source, bytes) or hasattr(source, "read"):
        return str(getattr(source, "name", "the image"))
    raise InputError(
        "an image must be given by its path, as a binary stream, as bytes or as an RGB array, "
        f"not as {type(source).__name__}"
    )


def _check_header(picture: Pillow.Image, name: str, most: int) -> None:
    """Refuse what cannot be measured, from what the header declares, before decoding."""
    width, height = picture.size
    if width * height > most:
        raise InputError(f"{name} has {width} x {height} pixels: {_limit(most)}")
    # Pillow opens 16-bit colour files as "RGB" and drops the low bytes; its decoders know.
    if picture.mode.startswith(("I", "F")) or ";16" in str(getattr(picture, "tile", "")):
        raise InputError(
            f"{name} has more than 8 bits per channel; rescale it to 0..255 and save it with 8 bits"
        )
    # Cameras store a preview as a second picture ("MPO"); the first one is the photograph.
    if getattr(picture, "is_animated", False) and picture.format != "MPO":
        raise InputError(
            f"{name} is animated or has several pages; save the one you need as a single image"
        )


def _plain_jpeg(content: bytes, most: int) -> Image | None:
    """Decode a JPEG of three channels by OpenCV: the pixels of Pillow in a third of the time.

    None for other files, and for what needs a closer look: large ones, EXIF or second pictures, and
    files that are cut off, of which OpenCV makes nothing and Pillow says what is wrong.
    """
    place, pixels = 2, 0
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    while content[place : place + 2] != b"\xff\xda":  # where the compressed data begin
        if place + 10 > len(content) or content[place : place + 2] in (b"\xff\xe1", b"\xff\xe2"):
            return None
        _, marker, length, bits, height, width, channels = _SEGMENT.unpack_from(content, place)
        if marker in (0xC0, 0xC2):  # baseline or progressive
            pixels = height * width if (bits, channels) == (8, 3) else 0
        place += 2 + length
    if not 0 < pixels <= min(most, _LARGE):
        return None
    import cv2  # not for other files: a search starts sooner without it

    decoded = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    return None if decoded is None else np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB))


def _to_rgb(picture: Pillow.Image) -> Pillow.Image:
    if not picture.has_transparency_data:
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    layer = picture.convert("RGBA")
    return Pillow.alpha_composite(Pillow.new("RGBA", layer.size, "white"), layer).convert("RGB")


def _limit(most: int) -> str:
    return f"more than {most:,} are refused; crop or scale it down"
