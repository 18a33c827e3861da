"""Both ways to give points answer alike."""

from __future__ import annotations

import numpy as np
import pytest

from resight.evaluation.pairwise import EmbeddedPoints, MeasuredPoints


@pytest.fixture
def both():
    rng = np.random.default_rng(0)
    Q, G = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    E = np.concatenate([Q, G])
    D = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    return D, EmbeddedPoints(Q, G), MeasuredPoints(D, 4)


@pytest.mark.parametrize(("start", "stop"), [(0, 4), (4, 10), (2, 7), (0, 10), (9, 10)])
def test_rows_across_the_border_of_queries_and_gallery(both, start, stop):
    D, *points = both
    for source in points:
        assert source.rows(start, stop) == pytest.approx(D[start:stop], abs=1e-12)


def test_pairs_in_any_order(both):
    D, *points = both
    i, j = (indices.ravel() for indices in np.indices(D.shape))
    for source in points:
        assert source.pairs(i, j) == pytest.approx(D.ravel(), abs=1e-12)
