"""The published datasets that resight reads: facts, file names, and what these tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from resight.datasets._walk import images_below
from resight.datasets.sightings import Sightings
from resight.errors import InputError

_PRID2011_IN_BOTH = 200  # persons 1..200 are the same people in both cameras of PRID2011
_MARKET_ROLES = {"bounding_box_train": "train", "query": "query", "bounding_box_test": "gallery"}


class Row(NamedTuple):
    """What a file name tells."""

    person: str
    camera: str
    role: str = ""
    site: str = ""
    sequence: str = ""


@dataclass(frozen=True)
class Dataset:
    """A published dataset: facts to show and the rule that reads its file names.

    `layouts` has for each layout a description and the pattern that its paths match, relative to
    the folder; `row` makes a `Row` of the named groups of such a pattern.
    """

    name: str
    title: str
    summary: str
    citation: str
    people: int  # seen by at least two cameras
    images: int  # pictures that the loader returns for a complete copy
    homes: tuple[str, ...]  # folder names under which it may lie below a common data folder
    layouts: dict[str, str]
    row: Callable[..., Row]
    licence: str = "research use only; not redistributed with resight"

    def load(self, root: Path) -> Sightings:
        """Read the dataset from its folder, or from a data folder that holds it, in one layout."""
        for folder in (*(root / home for home in self.homes), root):
            if folder.is_dir():
                rows = self._rows(folder)
                if rows:
                    return sightings_of_rows(rows, folder, self.name)
        raise InputError(
            f"no {self.title} images in {str(root)!r}; expected {' or '.join(self.layouts)}: give "
            "the folder of the dataset or the folder above it"
        )

    def recognises(self, images: list[PurePosixPath]) -> bool:
        """Whether these files are mostly there and named as this dataset's are."""
        patterns = [re.compile(pattern) for pattern in self.layouts.values()]
        names = [str(path) for path in images]
        most = max(sum(bool(p.fullmatch(name)) for name in names) for p in patterns)
        return 2 * most >= self.images

    def _rows(self, folder: Path) -> dict[str, Row]:
        names = [str(path) for path in images_below(folder)]
        found: dict[str, dict[str, Row]] = {}
        for layout, pattern in self.layouts.items():
            matches = ((name, re.fullmatch(pattern, name)) for name in names)
            rows = {name: self.row(**match.groupdict()) for name, match in matches if match}
            if rows:
                found[layout] = rows
        if len(found) > 1:
            raise InputError(
                f"{str(folder)!r} contains {self.title} in two layouts, "
                f"{' and '.join(found)}; keep one, or give the folder of one"
            )
        return next(iter(found.values()), {})


def sightings_of_rows(rows: Mapping[str, Row], root: Path, name: str) -> Sightings:
    """Make a table of what file names tell: paths and their rows."""
    persons, cameras, roles, sites, sequences = map(np.array, zip(*rows.values(), strict=True))
    labels = {"sequences": sequences, "roles": roles, "sites": sites}
    return Sightings(np.array(list(rows)), persons, cameras, **labels, root=root, name=name)


def _numbered(person: str, camera: str, role: str = "", site: str = "", sequence: str = "") -> Row:
    return Row(str(int(person)), camera, role, site, sequence)


def _grid(person: str, camera: str, site: str) -> Row:
    """Person 0 is a distractor; the protocol's camera is the folder, the real one is the site."""
    return _numbered(person, camera, role="" if int(person) else "distractor", site=site)


def _market(folder: str, person: str, camera: str, sequence: str) -> Row:
    """Person 0000 is a distractor, -1 is junk that evaluation leaves out."""
    role = {"0000": "distractor", "-1": "junk"}.get(person, _MARKET_ROLES[folder])
    return _numbered(person, f"c{camera}", role, sequence=f"s{sequence}")


def _prid2011(letter: str, person: str) -> Row:
    """Tell people apart by number up to 200; beyond, each camera counts for itself.

    People whom only camera B saw fill the gallery (distractor); people whom only camera A saw have
    no match to look for and no published protocol uses them (junk).
    """
    camera, number = f"cam_{letter}", int(person)
    if number <= _PRID2011_IN_BOTH:
        return Row(str(number), camera)
    return Row(f"{letter}{number}", camera, role="junk" if letter == "a" else "distractor")


_ALL = (
    Dataset(
        name="cuhk01",
        title="CUHK01",
        summary=(
            "971 students on a campus, 60 x 160 pixels, two images from each of two "
            "cameras: camera A shows the front or back, camera B the side."
        ),
        citation=(
            "W. Li, R. Zhao, X. Wang: Human reidentification with transferred metric learning. "
            "ACCV 2012"
        ),
        people=971,
        images=3884,
        homes=("cuhk01", "CUHK01"),
        layouts={
            f"{folder}NNNNPPP.png": folder + r"(?P<person>\d{4})00(?P<view>[1-4])\.(?:png|jpg|bmp)"
            for folder in ("campus/", "")
        },
        row=lambda person, view: _numbered(person, "A" if view in "12" else "B"),
    ),
    Dataset(
        name="grid",
        title="GRID (QMUL underground re-identification)",
        summary=(
            "250 people with a probe and a gallery image from a busy underground station, low "
            "quality, plus 775 gallery images of other people (person 0, role distractor). The "
            "folder counts as the camera; the actual camera in the station is stored as site."
        ),
        citation=(
            "C. C. Loy, T. Xiang, S. Gong: Multi-camera activity correlation analysis. CVPR 2009; "
            "Time-delayed correlation analysis for multi-camera activity understanding. IJCV 2010"
        ),
        people=250,
        images=1275,
        homes=("grid", "GRID", "underground_reid"),
        layouts={
            "probe/NNNN_C_*.jpeg and gallery/NNNN_C_*.jpeg": (
                r"(?P<camera>probe|gallery)/(?P<person>\d{4})_(?P<site>\d)_[\d_]+\.(?:jpeg|jpg|png)"
            )
        },
        row=_grid,
    ),
    Dataset(
        name="market1501",
        title="Market-1501",
        summary=(
            "1,501 people in front of a supermarket, 128 x 64 pixels, six cameras: 12,936 "
            "training images of 751 people, 3,368 queries and 19,732 gallery images of "
            "750 people, distractors (0000) and junk boxes (-1)."
        ),
        citation=(
            "L. Zheng, L. Shen, L. Tian, S. Wang, J. Wang, Q. Tian: Scalable person "
            "re-identification: a benchmark. ICCV 2015"
        ),
        people=1501,
        images=36036,
        homes=(
            *("market1501", "Market-1501", "Market-1501-v15.09.15"),
            "market1501/Market-1501-v15.09.15",
        ),
        layouts={
            "bounding_box_train/NNNN_cCsS_*.jpg, query/ and bounding_box_test/": (
                r"(?P<folder>bounding_box_train|query|bounding_box_test)"
                r"/(?P<person>-1|\d{4})_c(?P<camera>\d)s(?P<sequence>\d)_\w+(?:\.jpg){1,2}"
            )
        },
        row=_market,
    ),
    Dataset(
        name="prid450s",
        title="PRID450S",
        summary=(
            "450 pedestrians on a street, one image from each of two cameras that face each other."
        ),
        citation=(
            "P. M. Roth, M. Hirzer, M. Koestinger, C. Beleznai, H. Bischof: Mahalanobis distance "
            "learning for person re-identification. In: Person Re-Identification, Springer 2014"
        ),
        people=450,
        images=900,
        homes=("prid450s", "PRID450S", "prid_450s", "PRID_450S"),
        layouts={
            "cam_a/img_NNN.png and cam_b/img_NNN.png": (
                r"cam_(?P<view>[ab])/img_(?P<person>\d{3,4})\.png"
            ),
            "images/NNNNPPP.png": r"images/(?P<person>\d{4})00(?P<view>[12])\.png",
        },
        row=lambda person, view: _numbered(person, "A" if view in "1a" else "B"),
    ),
    Dataset(
        name="prid2011",
        title="PRID2011 (single shot)",
        summary=(
            "Pedestrians on a street and a crosswalk: 385 in camera A, 749 in camera B; "
            "people 1 to 200 appear in both. The others are named after their camera "
            "(a201, b201): role junk in A, distractor in B."
        ),
        citation=(
            "M. Hirzer, C. Beleznai, P. M. Roth, H. Bischof: Person re-identification by "
            "descriptive and discriminative classification. SCIA 2011"
        ),
        people=200,
        images=1134,
        homes=("prid2011", "prid_2011", "PRID2011", "prid_2011/prid_2011"),
        layouts={
            f"{folder}cam_a/person_NNNN.png and {folder}cam_b/person_NNNN.png": (
                folder + r"cam_(?P<letter>[ab])/person_(?P<person>\d{4})\.png"
            )
            for folder in ("single_shot/", "")
        },
        row=_prid2011,
    ),
    Dataset(
        name="viper",
        title="VIPeR",
        summary=(
            "632 pedestrians outdoors, 128 x 48 pixels, one image from each of two cameras, mostly "
            "from viewpoints 90 degrees apart (the angle in the file name is not used)."
        ),
        citation=(
            "D. Gray, S. Brennan, H. Tao: Evaluating appearance models for recognition, "
            "reacquisition, and tracking. PETS 2007"
        ),
        people=632,
        images=1264,
        homes=("viper", "VIPeR", "VIPeR.v1.0/VIPeR"),
        layouts={
            "cam_a/NNN_ANGLE.bmp and cam_b/NNN_ANGLE.bmp": (
                r"(?P<camera>cam_[ab])/(?P<person>\d{3,4})_(?:\d{1,3})\.(?:bmp|png|jpg)"
            )
        },
        row=_numbered,
    ),
)

DATASETS = {dataset.name: dataset for dataset in _ALL}
