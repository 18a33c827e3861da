"""People's own data: a folder of pictures whose names or subfolders tell camera and person.

| layout | person | camera |
|---|---|---|
| ``<camera>/<person>/*`` | folder | folder |
| ``<camera>/*`` | unknown | folder |
| ``PPPP_cCsS_*`` (Market-1501's names), also below ``train/ query/ gallery/`` | name | name |
| a file ``sightings.csv`` in the folder | column | column |
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from resight.datasets._walk import folders_without_images, images_below, require_folder
from resight.datasets.published import MARKET_ROLES, Row, sightings_of_rows
from resight.datasets.sightings import Sightings
from resight.datasets.table import read_table
from resight.errors import InputError

TABLE = "sightings.csv"
LAYOUTS = (
    "<camera>/<person>/* (labelled), <camera>/* (people unknown), "
    f"names such as 0001_c1s1_000151.jpg, or a CSV table ({TABLE} in the folder)"
)
_NAME = re.compile(r"(-1|[0-9A-Za-z]+)_c([0-9]+)(?:s([0-9]+))?(?:_.*)?\.\w+")
_ROLE_FOLDERS = {"train": "train", "gallery": "gallery", **MARKET_ROLES}


def read_folder(folder: str | Path) -> Sightings:
    """Read a folder of one's own in any of the layouts above.

    Hidden files and files that are no images by their suffix are ignored; see `resight data check`.

    Raises
    ------
    InputError
        For a folder without images, mixed layouts, empty camera or person folders.
    """
    root = Path(folder)
    require_folder(root)
    if (root / TABLE).is_file():
        return read_table(root / TABLE)
    images = images_below(root)
    if not images:
        raise InputError(f"no images in {str(root)!r}; expected {LAYOUTS}")
    empty = folders_without_images(root, images)
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise InputError(
            f"the folder {empty[0]!r}{more} in {str(root)!r} has no images; add some or remove it"
        )
    rows = dict(zip(map(str, images), _rows(root, images), strict=True))
    return sightings_of_rows(rows, root, root.resolve().name or "sightings")


def _rows(root: Path, images: list[PurePosixPath]) -> list[Row]:
    by_depth: dict[int, PurePosixPath] = {}
    for path in images:
        by_depth.setdefault(len(path.parts), path)
    if len(by_depth) > 1:
        examples = " and ".join(repr(str(path)) for _, path in sorted(by_depth.items()))
        raise InputError(f"mixed layouts in {str(root)!r}: {examples}; use one of {LAYOUTS}")
    depth = next(iter(by_depth))
    market = _market_rows(images, depth) if depth < 3 else None
    if market is not None:
        return market
    if depth == 2:
        return [Row("", camera=path.parts[0]) for path in images]
    if depth == 3:
        return [Row(path.parts[1], camera=path.parts[0]) for path in images]
    trouble = "no camera folders" if depth == 1 else "folders nested too deeply"
    raise InputError(f"{trouble} in {str(root)!r}, as in {str(images[0])!r}; expected {LAYOUTS}")


def _market_rows(images: list[PurePosixPath], depth: int) -> list[Row] | None:
    """Read names that all follow Market-1501, None if none does; a mixture is refused."""
    matches = [_NAME.fullmatch(path.name) for path in images]
    roles = [_ROLE_FOLDERS.get(path.parts[0].lower()) if depth == 2 else "" for path in images]
    if not any(matches) or not any(role is not None for role in roles):
        return None
    rows = []
    for path, match, role in zip(images, matches, roles, strict=True):
        if match is None or role is None:
            example = next(str(path) for path, match in zip(images, matches, strict=True) if match)
            raise InputError(
                f"{example!r} is named as in Market-1501 but {str(path)!r} is not; "
                f"name all files that way, in {', '.join(_ROLE_FOLDERS)} or in one folder"
            )
        person, camera, sequence = match.groups()
        role = {"-1": "junk", "0000": "distractor"}.get(person, role)
        rows.append(Row(person, f"c{camera}", role, sequence=f"s{sequence}" if sequence else ""))
    return rows


def of_one_camera(path: Path, camera: str) -> Sightings:
    """Take one image, or all images of a folder, as unlabelled sightings of one camera."""
    root = path.parent if path.is_file() else path
    names = [PurePosixPath(path.name)] if path.is_file() else images_below(path)
    if not names:
        raise InputError(f"no images in {str(path)!r}; give a folder of images")
    return sightings_of_rows({str(name): Row("", camera) for name in names}, root, "sightings")
