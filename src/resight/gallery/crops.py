"""Images on their way into a gallery or a search: read, checked, kept as bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight import images
from resight.errors import InputError
from resight.images.arrays import MIN_HEIGHT, MIN_WIDTH
from resight.validation import read_bytes

Picture = NDArray[np.uint8]
Query = str | Path | Picture

MAX_BYTES = 20 * 2**20
MAX_PIXELS = 16_000_000  # a crop of one person; the pictures that boxes are cut from may have more
# What files that are kept as they are begin with, and their media types.
_KEPT_AS_THEY_ARE = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
# What is stored and shown of a sighting that is known by its vector alone: a grey figure.
NO_IMAGE = Path(__file__).with_name("no_image.png").read_bytes()
_SAMPLED = 1000  # rows and columns that are enough to see it
_PLAIN = 2.0  # a standard deviation of grey below this is a wall, not a person
_SMALL = (16, 32)  # width and height at which pictures are compared
_MEAN, _MOST = 2.5, 30.0  # grey levels that encoding and sizing may change, on average and anywhere


def read(path: Path) -> bytes:
    """Read an image file, refusing what is missing, no file or far too large."""
    return read_bytes(path, MAX_BYTES)


def check(picture: Picture, name: str = "the image", standing: bool = True) -> None:
    """Refuse what cannot show a person; what is not `standing` may be wider than tall."""
    height, width = picture.shape[:2]
    if height < MIN_HEIGHT or width < MIN_WIDTH:
        raise InputError(
            f"{name} is {width} x {height} pixels: too small to show a person; the "
            f"minimum is {MIN_WIDTH} x {MIN_HEIGHT}"
        )
    step = max(1, height // _SAMPLED), max(1, width // _SAMPLED)
    if picture[:: step[0], :: step[1]].mean(axis=2).std() < _PLAIN:
        raise InputError(f"{name} is a single colour: it shows no person")
    if standing and width > 2 * height:
        raise InputError(
            f"{name} is {width} x {height} pixels, much wider than tall: not a crop of "
            "one standing person. Crop the person first (resight crop)"
        )


def picture_of(query: Query, standing: bool) -> Picture:
    """Read the image of a query, refusing what cannot show a person."""
    name = "the query"
    if isinstance(query, (str, Path)):
        name = str(query)
        query = images.read(read(Path(query)), name, MAX_PIXELS)
    picture = images.as_rgb(query)
    check(picture, name, standing)
    return picture


def keep(content: bytes, picture: Picture, box: Sequence[int] | None) -> tuple[bytes, Picture]:
    """Choose what to store: a JPEG or PNG as it is, anything else (or a box) as lossless PNG."""
    if box is not None:
        picture = images.cut(picture, box)
    elif image_type(content) is not None:
        return content, picture
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue(), picture


def image_type(content: bytes) -> str | None:
    """Return the media type of stored bytes, None for anything that browsers need not show."""
    known = (kind for sign, kind in _KEPT_AS_THEY_ARE.items() if content.startswith(sign))
    return next(known, None)


def thumb(picture: Picture) -> NDArray[np.float32]:
    """Return a picture at the size at which pictures are compared, in float32."""
    small = cv2.resize(picture.astype(np.float32), _SMALL, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32)


def shows_one_of(content: bytes, thumbs: NDArray[np.float32]) -> bool:
    """Whether a stored picture is one of some, perhaps encoded again or of another size."""
    if content == NO_IMAGE:
        return False
    try:
        difference = np.abs(thumb(images.read(content, "a stored picture")) - thumbs)
    except InputError:  # damaged: `gallery check` tells
        return False
    means, most = difference.mean(axis=(1, 2, 3)), difference.max(axis=(1, 2, 3))
    return bool(((means <= _MEAN) & (most <= _MOST)).any())
