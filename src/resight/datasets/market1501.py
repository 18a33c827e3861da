"""Market-1501: six cameras before a supermarket, boxes from a detector, a query list."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row

_ROLES = {"bounding_box_train": "train", "query": "query", "bounding_box_test": "gallery"}


def _row(match: re.Match[str]) -> Row:
    """Read the names: person 0000 is a distractor, -1 is junk that evaluation leaves out."""
    folder, number, camera, sequence = match.group(1, 2, 3, 4)
    person = str(int(number))
    role = {"0": "distractor", "-1": "junk"}.get(person, _ROLES[folder])
    return Row(person, camera=f"c{camera}", role=role, sequence=f"s{sequence}")


DATASET = Dataset(
    name="market1501",
    title="Market-1501",
    summary=(
        "1,501 people in front of a supermarket, 128 x 64 pixels, six cameras: 12,936 "
        "training images of 751 people, 3,368 queries and 19,732 gallery images of "
        "750 people, distractors (0000) and junk boxes (-1)."
    ),
    licence="research use only; not redistributed with resight",
    citation=(
        "L. Zheng, L. Shen, L. Tian, S. Wang, J. Wang, Q. Tian: Scalable person re-identification: "
        "a benchmark. ICCV 2015"
    ),
    people=1501,
    images=36036,
    homes=(
        "market1501",
        "Market-1501",
        "Market-1501-v15.09.15",
        "market1501/Market-1501-v15.09.15",
    ),
    layouts={
        "bounding_box_train/NNNN_cCsS_*.jpg, query/ and bounding_box_test/": (
            r"(bounding_box_train|query|bounding_box_test)"
            r"/(-1|\d{4})_c(\d)s(\d)_\w+(?:\.jpg){1,2}"
        )
    },
    row=_row,
)
