"""PRID2011, single shot: two street cameras, 200 people in both, many in one of them only."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row

_IN_BOTH = 200  # persons 1..200 are the same people in both cameras; beyond, numbers mean nothing


def _row(match: re.Match[str]) -> Row:
    """Read the names; the same number beyond 200 is another person in each camera.

    People whom only camera B saw fill the gallery (distractor); people whom only camera A saw have
    no match to look for and no published protocol uses them (junk).
    """
    letter, number = match.group(1), int(match.group(2))
    if number <= _IN_BOTH:
        return Row(str(number), f"cam_{letter}")
    return Row(f"{letter}{number}", f"cam_{letter}", role="junk" if letter == "a" else "distractor")


DATASET = Dataset(
    name="prid2011",
    title="PRID2011 (single shot)",
    summary=(
        "Pedestrians on a street and a crosswalk: 385 in camera A, 749 in camera B; "
        "people 1 to 200 appear in both. The others are named after their camera "
        "(a201, b201): role junk in A, distractor in B."
    ),
    licence="research use only; not redistributed with resight",
    citation=(
        "M. Hirzer, C. Beleznai, P. M. Roth, H. Bischof: Person re-identification by descriptive "
        "and discriminative classification. SCIA 2011"
    ),
    people=200,
    images=1134,
    homes=("prid2011", "prid_2011", "PRID2011", "prid_2011/prid_2011"),
    layouts={
        "single_shot/cam_a/person_NNNN.png and single_shot/cam_b/person_NNNN.png": (
            r"single_shot/cam_([ab])/person_(\d{4})\.png"
        ),
        "cam_a/person_NNNN.png and cam_b/person_NNNN.png": r"cam_([ab])/person_(\d{4})\.png",
    },
    row=_row,
)
