"""Rank 1 by pairs of cameras, against the definition: restrict the gallery, count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation import cmc
from resight.evaluation.metrics import camera_pairs


def sightings(seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    persons = rng.integers(0, 6, (2, 40)).astype(str)
    cameras = np.array(["a", "b", "c"])[rng.integers(0, 3, (2, 40))]
    junk = rng.random(40) < 0.1
    return rng.random((40, 40)).round(1), *persons, *cameras, junk  # rounded: ties occur


@pytest.mark.parametrize("seed", range(4))
def test_each_entry_is_rank_1_in_that_camera_alone(seed: int) -> None:
    D, asked, held, asking, seen, junk = sightings(seed)
    found = camera_pairs(D, asked, held, asking, seen, junk=junk)
    assert found["cameras"] == ["a", "b", "c"]
    for i, own in enumerate(found["cameras"]):
        assert found["asked"][i][i] == found["right"][i][i] == 0
        for j, other in enumerate(found["cameras"]):
            columns = (seen == other) & ~junk
            rows = (asking == own) & np.isin(asked, held[columns])
            if i != j and rows.any():
                expected = cmc(D[np.ix_(rows, columns)], asked[rows], held[columns])[0]
                assert found["right"][i][j] / found["asked"][i][j] == pytest.approx(expected)
                assert found["asked"][i][j] == rows.sum()


def test_ties_never_flatter() -> None:
    found = camera_pairs([[1.0, 1.0]], ["a"], ["a", "b"], ["1"], ["2", "2"])
    assert (found["asked"][0][1], found["right"][0][1]) == (1, 0)


def test_the_order_of_cameras_is_that_given() -> None:
    D, *labels, _ = sightings()
    one, other = camera_pairs(D, *labels), camera_pairs(D, *labels, cameras=["c", "b", "a"])
    np.testing.assert_array_equal(other["right"], np.array(one["right"])[::-1, ::-1])


def test_what_does_not_fit_is_refused() -> None:
    D, *labels, _ = sightings()
    with pytest.raises(InputError, match="40 queries"):
        camera_pairs(D[:3], *labels)
