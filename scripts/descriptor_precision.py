"""Measure what storing descriptors as float16 costs, for docs/gallery.md.

    python scripts/descriptor_precision.py DATA STORE

DATA holds cuhk01, prid450s, grid and prid2011; STORE keeps descriptors. Prints rank 1 with float32
and its mean change with float16, over the splits of each set's protocol.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import resight
from resight.experiments.tables import markdown_table

SETS = {"cuhk01": "cuhk01-single-shot", "prid450s": None, "grid": None, "prid2011": None}
LEARNERS = "kxqda,xqda,euclidean"


def main(data: Path, folder: Path) -> None:
    """Print the table."""
    store = resight.FeatureStore(folder)
    rows = []
    for name, protocol in SETS.items():
        sightings = resight.sightings(name, data / name)
        features = store.ensure(sightings, "gog+lomo-dagger")
        rounded = tuple(part.astype(np.float16).astype(np.float32) for part in features.parts)
        ranks = []
        for given in (features, replace(features, parts=rounded)):
            result = resight.evaluate(
                sightings, features=given, learner=LEARNERS, protocol=protocol, store=store, jobs=1
            )
            ranks.append(result.to_frame().groupby("learner", sort=False)["rank1"].mean())
        change = ranks[1] - ranks[0]
        cells = [f"{ranks[0][one]:.1f} ({change[one]:+.2f})" for one in LEARNERS.split(",")]
        rows.append([name, *cells])
    print(markdown_table(("set", *LEARNERS.split(",")), rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
