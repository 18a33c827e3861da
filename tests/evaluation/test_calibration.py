from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation.calibration import Calibration, HeldOut, Rates
from resight.evaluation.calibration_fitting import continued, fit_calibration, with_person
from resight.evaluation.presence import PRECISION, Expected, errors_allowed, gap, nearest
from resight.evaluation.statistics import scores
from resight.experiments.confidence import identified_at, state


def world(n_queries, n_gallery, seed):
    """Distances like sums of squares; some queries and some sightings are near to everybody."""
    rng = np.random.default_rng(seed)
    D = rng.gamma(8.0, 1.0, size=(n_queries, n_gallery))
    D *= np.exp(0.3 * rng.normal(size=(n_queries, 1)) + 0.2 * rng.normal(size=n_gallery))
    same = np.zeros(D.shape, bool)
    mates = rng.permutation(np.resize(np.arange(n_gallery), n_queries))
    same[np.arange(n_queries), mates] = True
    D[same] *= rng.gamma(3.0, 0.1, size=n_queries)
    return HeldOut(D, same, "a")


def told(calibration, n_queries, n_gallery, seed):
    one = world(n_queries, n_gallery, seed)
    held = np.array([f"p{i}" for i in range(n_gallery)])
    asked = held[one.same.argmax(axis=1)]
    return state(calibration, one.distances, np.ones_like(one.same), asked, held)


@pytest.fixture(scope="module")
def calibration():
    return fit_calibration([world(60, 30, seed) for seed in range(10)], n_people=300)


@pytest.mark.parametrize("n_gallery", [60, 400])
def test_stated_probabilities_come_true_in_larger_galleries(calibration, n_gallery):
    new = told(calibration, 800, n_gallery, seed=99)
    for p, right in (("probability", "right"), ("half_probability", "half_right")):
        found = scores(new[p], new[right])
        assert found["ece"] < 0.08
        assert found["log_loss"] < found["log_loss_constant"]


@pytest.mark.parametrize("n_gallery", [30, 100, 800, 3000])
def test_answers_are_wrong_as_rarely_as_promised(calibration, n_gallery):
    new = told(calibration, 800, n_gallery, seed=7)
    missing, answer = new["missing"], new["half_answer"]
    assert (answer[missing] == "found").mean() <= 0.13
    assert (answer[~missing] == "absent").mean() <= 0.15
    assert (answer == "found")[~missing].mean() > 2 * (answer == "found")[missing].mean()
    assert new["half_best"][answer == "found"].mean() > 0.75


@pytest.mark.parametrize("correct", [11.0, 40.0, 300.0])
def test_as_many_errors_are_allowed_as_the_lower_bound_of_the_precision_allows(correct):
    n = correct + errors_allowed(correct)
    found = proportion_interval(correct / n, n, 1.645)
    assert found == pytest.approx(PRECISION, abs=1e-9)


def proportion_interval(p, n, z):
    """Wilson's lower bound, from a textbook."""
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n)


def test_nobody_is_called_found_by_what_too_few_people_told():
    assert errors_allowed(10.0) < 0 < errors_allowed(11.0)
    rankings = [world(20, 20, seed) for seed in range(3)]
    few, many = (fit_calibration(rankings, n_people=n) for n in (20, 400))
    shares = [(told(one, 400, 60, 8)["answer"] == "found").mean() for one in (few, many)]
    assert shares[0] < 0.02 < shares[1]


def test_larger_gaps_tolerate_more_absence_and_the_precision_holds_there(calibration):
    strangers = calibration.strangers
    expected = Expected.of(strangers, 100)
    gaps = np.linspace(-1.0, 10.0, 50)
    tolerated = expected.tolerated(gaps)
    assert (np.diff(tolerated) >= 0).all()
    assert tolerated[0] < 0 < tolerated[-1]
    near, mates = strangers.draw(100)
    present = gap(np.sort(np.column_stack([near, mates]), axis=1))
    place = np.flatnonzero(tolerated > 0)[0]  # the first cut that is possible, and what it allows
    accepted = [(one >= gaps[place]).mean() for one in (present, gap(near))]
    right = ((mates < near[:, 0]) & (present >= gaps[place])).mean()
    assert right / (accepted[0] + tolerated[place] * accepted[1]) > PRECISION


def test_how_near_strangers_come_does_not_depend_on_how_many_of_the_others_are_there(calibration):
    one = with_person(world(400, 100, seed=3))
    there = nearest(np.log(one.distances))
    gone = nearest(np.log(np.where(one.same, np.inf, one.distances)))
    half = np.arange(len(there))[:, None] % 2 == 0
    fits = [
        calibration.strangers.fit(np.where(half, a, b), 100)
        for a, b in ((there, there), (there, gone), (gone, gone))
    ]
    assert np.ptp(fits, axis=0).max() < 0.12  # 0.35 if half of them were taken to be there
    taken = [np.quantile(Expected.of(calibration.strangers, 100, fit).present, 0.1) for fit in fits]
    assert np.ptp(taken) < 0.02


def test_standing_out_finds_more_than_the_nearest_distance(calibration):
    new = told(calibration, 800, 200, seed=5)
    rates = [
        identified_at(new[name], new[first], new["missing"], 0.1)
        for name, first in (("stands_out", "half_best"), ("relative", "half_right"))
    ]
    assert rates[0] > rates[1]


def test_pairs_become_less_likely_with_distance(calibration):
    p = calibration.probability([0.1, 1.0, 4.0, 10.0])
    assert (np.diff(p) < 0).all()
    assert calibration.probability([0.0])[0] == pytest.approx(1.0)
    assert (np.diff(calibration.log_ratios(np.geomspace(1e-6, 10, 50))) < 0).all()


def test_shares_add_up_and_leave_out_what_does_not_count(calibration):
    D = world(5, 20, 1).distances
    D[:, 3] = np.inf
    shares = calibration.shares(D)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares[:, 3] == 0).all()
    np.testing.assert_allclose(calibration.shares(3.7 * D), shares)
    at = calibration.relative_at(0.0)
    assert calibration.log_ratios(at) == pytest.approx(0.0, abs=0.1)


def test_too_few_people_are_refused_with_the_number_needed():
    with pytest.raises(InputError, match=r"at least 20 people .* there are 12; label 8 more"):
        fit_calibration([world(12, 12, seed=0)], n_people=12)


def test_people_that_are_all_told_apart_give_finite_probabilities():
    rng = np.random.default_rng(0)
    D = rng.uniform(1.0, 2.0, size=(30, 30))
    np.fill_diagonal(D, 0.01)
    fitted = fit_calibration([HeldOut(D, np.eye(30, dtype=bool))], n_people=30)
    assert np.isfinite(fitted.checks).all()
    assert fitted.shares(D).diagonal().min() > 0.9
    assert fitted.measured(Rates())["found"] == 1.0


def test_a_trend_that_is_linear_in_one_over_the_people_is_continued_to_all_of_them():
    def of(people):
        choice = 5.0 - 40.0 / people, 2.0 + 30.0 / people, 100.0 / people
        return Calibration((0.0, 1.0), choice, 50)

    found = continued(of(90), of(80).choice, step=8 / 10)
    np.testing.assert_allclose(found.choice, of(100).choice)


def test_measured_rates_are_those_of_the_held_out_people(calibration):
    rates = Rates()
    for some in (None, calibration.groups()["a"]):
        found = calibration.measured(rates, some)
        assert found["found"] >= 0.8 - 1e-9
        assert 0.5 < found["absent"] <= 1
    assert calibration.measured(rates, np.zeros(len(calibration.cameras), bool)) == {}
    stricter = calibration.measured(rates._replace(false_accepts=0.01))
    assert stricter["found"] >= found["found"]


def test_held_out_queries_are_grouped_by_camera_and_height(calibration):
    n = len(calibration.cameras)
    known = replace(calibration, heights=np.resize([60, 90, 128], n))
    groups = known.groups()
    assert list(groups) == [
        "a",
        "crops up to 60 pixels",
        "crops of 61 to 90 pixels",
        "crops above 90 pixels",
    ]
    assert [int(some.sum()) for some in groups.values()][1:] == [n // 3] * 3
    assert all(known.measured(Rates(), some)["found"] > 0.7 for some in groups.values())
    for heights in (np.full(n, 128), np.resize([0, 100, 200], n)):  # all alike; not known of some
        assert list(replace(calibration, heights=heights).groups()) == ["a"]


@pytest.mark.parametrize("rate", [0.0, 1.0, 1.5, True])
def test_rates_outside_zero_and_one_are_refused(rate):
    with pytest.raises(InputError, match="between 0 and 1"):
        Rates(false_accepts=rate).check()


def test_calibrations_that_decided_otherwise_keep_probabilities(calibration):
    old = {one.name: getattr(calibration, one.name) for one in fields(calibration)}
    for version in (2, 3):
        read = Calibration.from_state(Calibration.migrate(old, version))
        assert not read.decides
        np.testing.assert_array_equal(read.log_ratios([0.1, 1.0]), calibration.log_ratios([0.1, 1]))


def test_what_an_older_version_learned_states_probabilities_and_decides_nothing():
    old = {"pair": (0.0, 1.0), "choice": (2.0, 1.0, 0.0), "tail": (0.1,), "spread": 0.0}
    read = Calibration.from_state(Calibration.migrate({**old, "n_people": 20}, 1))
    assert not read.decides
    assert read.probability([1.0])[0] == pytest.approx(0.5)


def test_sightings_far_from_all_that_was_learned_are_outside():
    rng = np.random.default_rng(0)
    known = Calibration((0.0, 1.0), (2.0, 1.0, 0.0), 20)
    assert not known.outside(rng.normal(size=(3, 4))).any()  # nothing is known of the range
    known.centre, known.basis = np.zeros(4, np.float32), np.eye(4, dtype=np.float32)[:2]
    known.limits = np.array([50.0, 0.5])
    usual, far, another_way = [2, 1, 1, 0], [9, 0, 0, 0], [1, 0, 1, 1]
    np.testing.assert_array_equal(known.outside(np.array([usual, far, another_way])), [0, 1, 1])


def test_what_was_learned_from_is_known_again_after_rounding():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(50, 20)).astype(np.float32)
    known = Calibration((0.0, 1.0), (2.0, 1.0, 0.0), 20, trained=E[:30, :8])
    rounded = E.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(known.knows(rounded), np.arange(50) < 30)
