"""PRID450S: 450 people seen once by each of two cameras on a street."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row


def _row(match: re.Match[str]) -> Row:
    parts = match.groupdict()
    view = parts.get("picture") or parts.get("folder")
    return Row(person=str(int(parts["person"])), camera="A" if view in ("1", "a") else "B")


DATASET = Dataset(
    name="prid450s",
    title="PRID450S",
    summary="450 pedestrians on a street, one image from each of two cameras that face each other.",
    licence="research use only; not redistributed with resight",
    citation=(
        "P. M. Roth, M. Hirzer, M. Koestinger, C. Beleznai, H. Bischof: Mahalanobis distance "
        "learning for person re-identification. In: Person Re-Identification, Springer 2014"
    ),
    people=450,
    images=900,
    homes=("prid450s", "PRID450S", "prid_450s", "PRID_450S"),
    layouts={
        "cam_a/img_NNN.png and cam_b/img_NNN.png": (
            r"cam_(?P<folder>[ab])/img_(?P<person>\d{3,4})\.png"
        ),
        "images/NNNNPPP.png": r"images/(?P<person>\d{4})00(?P<picture>[12])\.png",
    },
    row=_row,
)
