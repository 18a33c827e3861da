"""Images and arrays that are damaged, inflated or pretend to be another."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from PIL import Image

HUGE = "9" * 30
PERSON = np.random.default_rng(1).integers(0, 256, (64, 32, 3), dtype=np.uint8)


def _png(width: int, height: int, depth: int = 8, colour: int = 2, rows: bytes = b"") -> bytes:
    """Write a PNG that declares a size, whatever it holds."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows or b"\0" * 64))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def _saved(kind: str, picture: np.ndarray = PERSON, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, kind, **options)
    return stream.getvalue()


def images() -> dict[str, bytes]:
    """Files that are called a.png."""
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 128\n%%EndComments\nshowpage\n"
    png, jpeg, tiff = _saved("PNG"), _saved("JPEG"), _saved("TIFF")
    pages: dict[str, Any] = {"save_all": True, "append_images": [Image.fromarray(255 - PERSON)]}
    return {
        "EPS": eps,
        "GIF": _saved("GIF"),
        "PPM": _saved("PPM"),
        "TGA": _saved("TGA"),
        "PCX": _saved("PCX"),
        "ICO": _saved("ICO"),
        "JPEG 2000": _saved("JPEG2000"),
        "SGI": _saved("SGI"),
        "PDF": _saved("PDF"),
        "SVG": b"<svg onload='alert(1)'/>",
        "HTML": b"<html><script>alert(1)</script></html>",
        "ZIP": b"PK\3\4" + b"\0" * 64,
        "PSD": b"8BPS\0\1" + b"\0" * 64,
        "FITS": b"SIMPLE  =                    T" + b" " * 80,
        "XBM": b"#define a_width 64\n#define a_height 128\nstatic char a_bits[] = {0};",
        "an MPEG": b"\0\0\1\xb3\x10\x00\x80",
        "a PCD": b"\0" * 2048 + b"PCD_" + b"\0" * 4096,
        "64 megapixels": _png(8000, 8000, 1, 0, b"\0" * (1001 * 8000)),
        "65 megapixels": _png(8100, 8100),
        "a billion pixels": _png(60_000, 60_000),
        "no width": _png(0, 100),
        "negative width": _png(2**32 - 1, 2),
        "16 bits": _png(64, 64, 16),
        "half a PNG": png[: len(png) // 2],
        "half a JPEG": jpeg[: len(jpeg) // 2],
        "half a TIFF": tiff[: len(tiff) // 2],
        "a PNG of junk": png[:60] + b"\xaa" * 500,
        "only a PNG's name": png[:8],
        "an animation": _saved("PNG", **pages),
        "two pages": _saved("TIFF", **pages),
        "too small": _saved("PNG", PERSON[:20, :8]),
        "one colour": _saved("PNG", np.full((64, 32, 3), 9, np.uint8)),
        "much wider than tall": _saved("PNG", np.tile(PERSON, (1, 9, 1))),
    }


def _npy(header: bytes, body: bytes = b"\0" * 256) -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + body


def _array(shape: str, kind: str = "'<f4'", order: str = "False") -> bytes:
    return _npy(f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode())


def arrays() -> dict[str, bytes]:
    """Files of vectors, called v.npy."""
    return {
        "a shape without end": _array("(" * 500),
        "a shape of text": _array("'16, 4'"),
        "a negative shape": _array("(-1, 4)"),
        "a huge shape": _array("(10**15, 4)"),
        "a shape of 30 digits": _array(f"({HUGE}, 4)"),
        "three dimensions": _array("(2, 2, 2)"),
        "a shape of floats": _array("(1.5, 4)"),
        "objects": _array("(16, 4)", "'|O'"),
        "an unknown type": _array("(16, 4)", "'nonsense'"),
        "a type without end": _array("(16, 4)", "[" * 99),
        "records": _array("(16,)", "[('a', '<f4'), ('b', '<i4')]"),
        "text": _array("(4, 4)", "'<U4'"),
        "a type of 4 GB": _array("(16, 4)", "'<U1000000000'"),
        "complex": _array("(4, 4)", "'<c8'"),
        "order of text": _array("(16, 4)", order="'no'"),
        "code": _array("__import__('os').getpid()"),
        "no header": _npy(b""),
        "half a header": _npy(b"{'descr': '<f4', "),
        "a header that is not text": _npy(b"\xff\xfe\x00" * 9),
        "deep": _npy(b"(" * 60_000),
        "version 9": b"\x93NUMPY\x09\0\x10\0" + b" " * 16,
        "only the name": b"\x93NUMPY",
        "a pickle": b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c\x02os\x94.",
        "nothing": b"",
        "nan": _npy(
            b"{'descr': '<f4', 'fortran_order': False, 'shape': (16, 4)}\n",
            np.full(64, np.nan, np.float32).tobytes(),
        ),
    }


def archives() -> dict[str, bytes]:
    """Files of vectors, called v.npz."""

    def packed(**members: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)
        return stream.getvalue()

    good = packed(features=_array("(16, 4)"))
    inflated = bytearray(good)
    place = good.rindex(b"PK\1\2") + 24
    inflated[place : place + 4] = struct.pack("<I", 2**32 - 2)
    return {
        "a broken member": packed(features=_npy(b"{")),
        "no features": packed(other=_array("(4, 4)")),
        "objects": packed(features=_array("(16, 4)", "'|O'")),
        "half of it": good[: len(good) // 2],
        "junk inside": good[:50] + b"\xaa" * 20 + good[70:],
        "no array": packed(features=b"text"),
        "more than it says": bytes(inflated),
        "a text": b"PK\3\4 no archive at all",
        "a huge member": packed(features=_array("(10**12, 4)")),
        "an encrypted member": good.replace(
            b"PK\1\2\x14\x03\x14\x00\x00", b"PK\1\2\x14\x03\x14\x00\x01"
        ),
    }
