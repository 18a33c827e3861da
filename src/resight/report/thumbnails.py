"""Small pictures as data URIs, so that a page needs no other file."""

from __future__ import annotations

import base64
import io
from pathlib import Path

HEIGHT = 96


def thumbnail(path: Path) -> str:
    """Return a small JPEG of an image file as a data URI."""
    from PIL import Image

    from resight.images import read

    picture = Image.fromarray(read(path))
    width = max(1, round(picture.width * HEIGHT / picture.height))
    stream = io.BytesIO()
    picture.resize((width, HEIGHT)).save(stream, "JPEG", quality=78)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
