"""VIPeR: 632 people seen once by each of two cameras from different angles."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row


def _row(match: re.Match[str]) -> Row:
    camera, person = match.group(1, 2)
    return Row(person=str(int(person)), camera=camera)


DATASET = Dataset(
    name="viper",
    title="VIPeR",
    summary=(
        "632 pedestrians outdoors, 128 x 48 pixels, one image from each of two cameras, mostly "
        "from viewpoints 90 degrees apart (the angle in the file name is not used)."
    ),
    licence="research use only; not redistributed with resight",
    citation=(
        "D. Gray, S. Brennan, H. Tao: Evaluating appearance models for recognition, reacquisition, "
        "and tracking. PETS 2007"
    ),
    people=632,
    images=1264,
    homes=("viper", "VIPeR", "VIPeR.v1.0/VIPeR"),
    layouts={
        "cam_a/NNN_ANGLE.bmp and cam_b/NNN_ANGLE.bmp": (
            r"(cam_[ab])/(\d{3,4})_(?:\d{1,3})\.(?:bmp|png|jpg)"
        )
    },
    row=_row,
)
