"""Reading image files into RGB arrays, or saying plainly why a file cannot be used."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps

from resight.errors import InputError, ResightError
from resight.images.check import as_rgb
from resight.images.colour import Image

# A crop of a person has a few thousand pixels; a photograph of 64 megapixels still passes.
MAX_PIXELS = 64_000_000
_DEEP = ("I", "F")  # Pillow's modes of more than 8 bits begin with these letters


Source = str | os.PathLike[str] | IO[bytes] | bytes | Image


def read(source: Source, name: str | None = None) -> Image:
    """Read one image as RGB.

    Parameters
    ----------
    source : path, binary stream, bytes of an image file, or RGB array, which is only checked
    name : str, optional
        What errors call it; by default its path.

    Returns
    -------
    uint8 array of shape (height, width, 3), RGB
        Turned upright as the EXIF orientation says. Gray levels are repeated in all three
        channels, transparent pixels are shown on white, CMYK and palettes are converted.

    Raises
    ------
    InputError
        If the file does not exist, is a folder, is empty, is no image, is damaged or
        truncated, is animated, holds 16 or more bits per channel, or declares more than
        `MAX_PIXELS` pixels; the last is found before anything is decoded.
    """
    if isinstance(source, np.ndarray):
        return as_rgb(source)
    name = name or _name(source)
    if isinstance(source, bytes):
        if not source:
            raise InputError(f"{name} is empty (0 bytes); copy or export it again")
        source = io.BytesIO(source)
    elif isinstance(source, (str, os.PathLike)):
        _check_file(Path(source), name)
    try:
        with Pillow.open(source) as picture:
            _check_header(picture, name)
            upright = ImageOps.exif_transpose(picture)
            return np.array(_to_rgb(upright))
    except ResightError:
        raise
    except Pillow.UnidentifiedImageError:
        raise InputError(f"{name} is not an image in a supported format; use PNG or JPEG") from None
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):
        raise InputError(f"{name} is too large: {_limit()}") from None
    except MemoryError:
        raise InputError(f"{name} does not fit in memory; scale it down") from None
    except Exception as error:  # decoders raise a dozen types, all meaning a damaged file
        raise InputError(
            f"{name} is damaged or truncated ({error}); copy or export it again"
        ) from error


def _name(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return str(source)
    if isinstance(source, bytes) or hasattr(source, "read"):
        return str(getattr(source, "name", "the image"))
    raise InputError(
        "an image must be given by its path, as a binary stream, as bytes or as an RGB array, "
        f"not as {type(source).__name__}"
    )


def _check_file(path: Path, name: str) -> None:
    if path.is_dir():
        raise InputError(f"{name} is a folder, not an image; give the files in it")
    if not path.exists():
        raise InputError(f"{name} does not exist; check the path")
    if not path.is_file():
        raise InputError(f"{name} is not a regular file; give an image file")
    if path.stat().st_size == 0:
        raise InputError(f"{name} is empty (0 bytes); copy or export it again")


def _check_header(picture: Pillow.Image, name: str) -> None:
    """Refuse what cannot be measured, from what the header declares, before decoding."""
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise InputError(f"{name} has {width} x {height} pixels: {_limit()}")
    if _is_deep(picture):
        raise InputError(
            f"{name} has more than 8 bits per channel; rescale it to 0..255 and save it with 8 bits"
        )
    # Cameras store a preview as a second picture ("MPO"); the first one is the photograph.
    if getattr(picture, "is_animated", False) and picture.format != "MPO":
        raise InputError(
            f"{name} is animated or has several pages; save the one you need as a single image"
        )


def _is_deep(picture: Pillow.Image) -> bool:
    if picture.mode.startswith(_DEEP):
        return True
    # Pillow opens 16-bit colour files as "RGB" and drops the low bytes; its decoders know.
    return any(";16" in str(part) for part in getattr(picture, "tile", []))


def _to_rgb(picture: Pillow.Image) -> Pillow.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    paper = Pillow.new("RGBA", layer.size, "white")
    return Pillow.alpha_composite(paper, layer).convert("RGB")


def _limit() -> str:
    return f"more than {MAX_PIXELS:,} are refused; crop or scale it down"
