"""Images as data URIs, so that a page needs no other file."""

from __future__ import annotations

import base64
import io

from resight.images.colour import Image


def data_uri(image: Image, height: int, quality: int) -> str:
    """Return an RGB image as a JPEG of this height, in proportion."""
    from PIL import Image as Pillow

    shown = Pillow.fromarray(image)
    if shown.height != height:
        shown = shown.resize((max(1, round(shown.width * height / shown.height)), height))
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
