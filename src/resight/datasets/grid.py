"""GRID: eight cameras of an underground station, 250 pairs and 775 people nobody asks for."""

from __future__ import annotations

import re

from resight.datasets._dataset import Dataset, Row


def _row(match: re.Match[str]) -> Row:
    """Read the names; the protocol's camera is the folder, the physical camera is the site."""
    folder, person, site = match.group(1, 2, 3)
    number = int(person)
    return Row(str(number), camera=folder, role="" if number else "distractor", site=site)


DATASET = Dataset(
    name="grid",
    title="GRID (QMUL underground re-identification)",
    summary=(
        "250 people with a probe and a gallery image from a busy underground station, low "
        "quality, plus 775 gallery images of other people (person 0, role distractor). The folder "
        "counts as the camera; the actual camera in the station is stored as site."
    ),
    licence="research use only; not redistributed with resight",
    citation=(
        "C. C. Loy, T. Xiang, S. Gong: Multi-camera activity correlation analysis. CVPR 2009; "
        "Time-delayed correlation analysis for multi-camera activity understanding. IJCV 2010"
    ),
    people=250,
    images=1275,
    homes=("grid", "GRID", "underground_reid"),
    layouts={
        "probe/NNNN_C_*.jpeg and gallery/NNNN_C_*.jpeg": (
            r"(probe|gallery)/(\d{4})_(\d)_[\d_]+\.(?:jpeg|jpg|png)"
        )
    },
    row=_row,
)
