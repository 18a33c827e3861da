"""Find image files below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from resight.errors import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm")
_DEEPEST = 4  # one level more than any layout has, so that "too deep" can be told from "not there"


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key in which "camera-2" comes before "camera-10".

    >>> sorted(["b10", "b9", "a"], key=natural)
    ['a', 'b9', 'b10']
    """
    pieces = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(int(piece), piece) if piece[0] in "0123456789" else (-1, piece) for piece in pieces]


def in_order(paths: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Sort paths folder by folder, numbers by value, ties (01 and 1) by spelling."""
    return sorted(paths, key=lambda path: ([natural(part) for part in path.parts], str(path)))


def images_below(folder: Path, others: bool = False) -> list[PurePosixPath]:
    """Images by their suffix at most four levels below `folder`, relative to it; or all `others`.

    Hidden files and folders are left out.
    """
    files = _walk(folder, _DEEPEST)
    return in_order(p for p in files if (p.suffix.lower() in IMAGE_SUFFIXES) != others)


def folders_without_images(folder: Path, images: list[PurePosixPath]) -> list[str]:
    """Visible folders at most two levels below `folder` that lead to none of the `images`."""
    used = {parent for path in images for parent in path.parents}
    found = []
    for top in _visible(folder):
        if top.is_dir():
            inner = [child.name for child in _visible(Path(top.path)) if child.is_dir()]
            candidates = [PurePosixPath(top.name), *(PurePosixPath(top.name, n) for n in inner)]
            found += [str(path) for path in candidates if path not in used]
    return sorted(found, key=natural)


def require_folder(folder: Path) -> None:
    """Refuse what is not a folder."""
    if not folder.exists():
        raise InputError(f"folder {str(folder)!r} does not exist; check the path")
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; give the folder of images")


def _walk(folder: Path, levels: int) -> Iterator[PurePosixPath]:
    for entry in _visible(folder):
        if entry.is_file():
            yield PurePosixPath(entry.name)
        elif entry.is_dir() and levels > 1:
            for path in _walk(Path(entry.path), levels - 1):
                yield PurePosixPath(entry.name) / path


def _visible(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]
