from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation.calibration import (
    Calibration,
    HeldOut,
    expected_calibration_error,
    log_loss,
)


def world(n_queries, n_gallery, seed, *, absent=False):
    """Distances whose strangers have the lower tail P(z < t) ~ t^k, as the model assumes."""
    rng = np.random.default_rng(seed)
    D = rng.gamma(4.0, 1.0, size=(n_queries, n_gallery))
    same = np.zeros(D.shape, bool)
    if not absent:
        mates = rng.integers(n_gallery, size=n_queries)
        same[np.arange(n_queries), mates] = True
        D[same] = rng.gamma(2.0, 0.4, size=n_queries)
    return HeldOut(D, same)


@pytest.fixture(scope="module")
def calibration():
    return Calibration.fit([world(300, 60, seed) for seed in range(4)], n_people=60)


def test_stated_probabilities_of_first_matches_come_true(calibration):
    new = world(4000, 200, seed=99)  # a larger gallery than it was learned from
    probabilities = calibration.match_probabilities(new.distances)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    first = new.distances.argmin(axis=1)
    right = new.same[np.arange(len(first)), first]
    stated = probabilities.max(axis=1)
    assert expected_calibration_error(stated, right) < 0.05
    assert log_loss(stated, right) < log_loss(np.full(len(right), right.mean()), right)


@pytest.mark.parametrize("n_gallery", [30, 200, 1000])
@pytest.mark.parametrize("rate", [0.05, 0.1])
def test_strangers_are_accepted_at_the_stated_rate(calibration, n_gallery, rate):
    absent = world(4000, n_gallery, seed=7, absent=True)
    realised = calibration.accepts(absent.distances, rate).mean()
    assert rate / 2 < realised < 1.5 * rate


def test_the_scale_of_distances_does_not_matter_in_a_ranking(calibration):
    new = world(50, 40, seed=1)
    np.testing.assert_allclose(
        calibration.match_probabilities(3.7 * new.distances),
        calibration.match_probabilities(new.distances),
    )


def test_pairs_become_less_likely_with_distance(calibration):
    p = calibration.probability([0.1, 1.0, 4.0, 10.0])
    assert (np.diff(p) < 0).all()
    assert p[0] > 0.9
    assert p[-1] < 0.2
    assert calibration.probability([0.0])[0] == pytest.approx(1.0)


def test_too_few_people_are_refused_with_the_number_needed():
    with pytest.raises(InputError, match="label 8 more people"):
        Calibration.fit([world(12, 12, seed=0)], n_people=12)


def test_rates_outside_zero_and_one_are_refused(calibration):
    with pytest.raises(InputError, match="between 0 and 1"):
        calibration.threshold(100, 1.5)
