from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation.calibration import Calibration, HeldOut
from resight.evaluation.reliability import Reliability, log_loss


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
    assert Reliability.of(stated, right).error < 0.05
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
    with pytest.raises(InputError, match=r"at least 20 people .* there are 12; label 8 more"):
        Calibration.fit([world(12, 12, seed=0)], n_people=12)


def test_known_probabilities_are_recovered():
    """Gamma distances: log r(z) is known exactly, so are all probabilities."""
    rng = np.random.default_rng(3)

    def drawn(n_queries, n_gallery):
        D = rng.gamma(9.0, 1.0, size=(n_queries, n_gallery))
        same = np.eye(n_queries, n_gallery, dtype=bool)
        D[same] = rng.gamma(3.0, 1.0, size=n_queries)
        return HeldOut(D, same)

    fitted = Calibration.fit([drawn(100, 100) for _ in range(20)], n_people=100)
    new = drawn(300, 300)
    ratio = new.distances**-6.0  # Gamma(3) / Gamma(9) densities
    true = ratio / ratio.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.match_probabilities(new.distances), true, atol=0.07)
    assert np.abs(fitted.match_probabilities(new.distances) - true).max(axis=1).mean() < 0.02


@pytest.mark.parametrize("n_gallery", [40, 180])
def test_probabilities_hold_where_half_the_people_are_missing(calibration, n_gallery):
    there, missing = world(2000, n_gallery, 5), world(2000, n_gallery, 6, absent=True)
    D = np.vstack([there.distances, missing.distances])
    same = np.vstack([there.same, missing.same])
    stated = calibration.match_probabilities(D, present=0.5)
    assert (stated.sum(axis=1) < 1).all()
    first = np.arange(len(D)), D.argmin(axis=1)
    assert Reliability.of(stated[first], same[first]).error < 0.05


def test_probabilities_of_some_gallery_are_those_of_the_sum_rule(calibration):
    D = world(3, 20, 8).distances
    z = D / np.median(D, axis=1, keepdims=True)
    ratio = np.exp(calibration.log_ratios(z))
    expected = 0.3 * ratio / 20 / (0.7 + 0.3 * ratio.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(calibration.match_probabilities(D, present=0.3), expected)
    with pytest.raises(InputError, match="above 0, up to 1"):
        calibration.match_probabilities(D, present=0.0)


def test_larger_galleries_and_lower_rates_ask_for_closer_matches(calibration):
    by_size = [calibration.threshold(n) for n in (10, 100, 1000, 10**6)]
    assert (np.diff(by_size) < 0).all()
    assert calibration.threshold(100, 0.01) < calibration.threshold(100, 0.1)


def test_queries_with_many_close_strangers_do_not_break_the_rate():
    def varied(n_queries, n_gallery, seed):
        rng = np.random.default_rng(seed)
        shape = 8.0 * np.exp(0.4 * rng.normal(size=(n_queries, 1)))
        D = rng.gamma(np.broadcast_to(shape, (n_queries, n_gallery)))
        return HeldOut(D, np.zeros(D.shape, bool))

    people = [varied(60, 60, seed) for seed in range(20)]
    for one in people:
        np.fill_diagonal(one.same, True)
        one.distances[one.same] /= 3.0
    fitted = Calibration.fit(people, n_people=60)
    assert fitted.spread > 0.1
    realised = fitted.accepts(varied(3000, 600, 99).distances, 0.1).mean()
    assert 0.05 < realised < 0.15


def test_people_that_are_all_told_apart_give_finite_probabilities():
    rng = np.random.default_rng(0)
    D = rng.uniform(1.0, 2.0, size=(30, 30))
    np.fill_diagonal(D, 0.01)
    fitted = Calibration.fit([HeldOut(D, np.eye(30, dtype=bool))], n_people=30)
    stated = fitted.match_probabilities(D)
    assert np.isfinite(stated).all()
    assert stated.diagonal().min() > 0.9
    assert np.isfinite(fitted.pair).all()


def test_a_trend_that_is_linear_in_one_over_the_people_is_continued_to_all_of_them(calibration):
    def of(people):
        a, b, c = 5.0 - 40.0 / people, 2.0 + 30.0 / people, 100.0 / people
        return dataclasses.replace(calibration, choice=(a, b, c))

    folds = 10
    found = of(90).continued(of(80), step=(folds - 2) / folds)
    np.testing.assert_allclose(found.choice, of(100).choice)
    assert found.tail == calibration.tail


def test_rates_outside_zero_and_one_are_refused(calibration):
    with pytest.raises(InputError, match="between 0 and 1"):
        calibration.threshold(100, 1.5)
