"""CUHK01: a campus, two cameras, two pictures of each person in each."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row


def _row(match: re.Match[str]) -> Row:
    person, picture = match.group(1, 2)
    return Row(person=str(int(person)), camera="A" if int(picture) <= 2 else "B")


DATASET = Dataset(
    name="cuhk01",
    title="CUHK01",
    summary=(
        "971 students on a campus, 60 x 160 pixels, two images from each of two "
        "cameras: camera A shows the front or back, camera B the side."
    ),
    licence="research use only; not redistributed with resight",
    citation=(
        "W. Li, R. Zhao, X. Wang: Human reidentification with transferred metric learning. "
        "ACCV 2012"
    ),
    people=971,
    images=3884,
    homes=("cuhk01", "CUHK01"),
    layouts={
        "campus/NNNNPPP.png": r"campus/(\d{4})00([1-4])\.(?:png|jpg|bmp)",
        "NNNNPPP.png": r"(\d{4})00([1-4])\.(?:png|jpg|bmp)",
    },
    row=_row,
)
