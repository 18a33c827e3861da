"""Measure what CAMEL gains without a label, beside k-XQDA with a few: docs/learners.md.

python scripts/without_labels.py

Synthetic cameras that no default was set on; 120 people to learn from, 120 others to find.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from resight import CAMEL, KXQDA, Euclidean
from resight.datasets.synthetic import draw_cameras
from resight.experiments.tables import markdown_table
from resight.learners._base import MetricLearner
from resight.learners._scoring import cross_camera_rank1
from resight.models.model import Model

SEEDS = (300, 301, 302)
ROWS: tuple[tuple[str, type[MetricLearner], int], ...] = (
    ("plain descriptor", Euclidean, 120),
    ("CAMEL, 0 labelled people", CAMEL, 120),
    ("k-XQDA, 10 labelled people", KXQDA, 10),
    ("k-XQDA, 50 labelled people", KXQDA, 50),
)


def measured(seed: int) -> list[float]:
    """Rank 1 of each row on one drawing, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw_cameras(Path(folder) / "cameras", 240, 2, seed=seed)
        X = Model(("whos-star",), Euclidean()).describe(drawn.files())
    people = np.random.default_rng(seed).permutation(np.unique(drawn.persons))
    unseen = np.isin(drawn.persons, people[120:])
    found = []
    for _, learner, n_people in ROWS:
        rows = np.isin(drawn.persons, people[:n_people])
        model = Model((), learner()).fit(X[rows], drawn.persons[rows], drawn.cameras[rows])
        D = model.distances(X[unseen], X[unseen])
        found.append(100 * cross_camera_rank1(D, drawn.persons[unseen], drawn.cameras[unseen]))
    return found


if __name__ == "__main__":
    figures = np.array([measured(seed) for seed in SEEDS])  # (seeds, rows)
    cells = [
        [title, f"{one.mean():.1f} ± {one.std(ddof=1):.1f}", ", ".join(f"{x:.1f}" for x in one)]
        for (title, *_), one in zip(ROWS, figures.T, strict=True)
    ]
    print(markdown_table(("learned from", "rank 1", f"drawings {SEEDS[0]} to {SEEDS[-1]}"), cells))
