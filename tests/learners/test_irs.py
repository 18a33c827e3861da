from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import resight
from resight import IRS
from resight.errors import InputError
from resight.learners.irs import identity_codes
from resight.models.model import Model


def unit(E):
    return E / np.linalg.norm(E, axis=1, keepdims=True)


def test_the_linear_kernel_is_ridge_regression_to_the_codes(sample):
    data = sample(n_persons=9, n_features=12)
    learner = IRS(kernel="linear", reg=0.3).fit(data.X, data.persons)
    Y = identity_codes(data.persons)
    P = np.linalg.solve(data.X.T @ data.X + learner.ridge_ * np.eye(12), data.X.T @ Y)
    np.testing.assert_allclose(learner.transform(data.X), unit(data.X @ P), atol=1e-10)


def test_a_generic_solver_finds_the_same_regression(sample):
    data = sample(n_persons=3, n_features=4)
    learner = IRS(kernel="linear").fit(data.X, data.persons)
    Y = identity_codes(data.persons)

    def loss(p):
        P = p.reshape(4, 3)
        return ((data.X @ P - Y) ** 2).sum() + learner.ridge_ * (P**2).sum()

    P = minimize(loss, np.zeros(12), tol=1e-12).x.reshape(4, 3)
    np.testing.assert_allclose(learner.transform(data.X), unit(data.X @ P), atol=1e-4)


def test_every_person_weighs_the_same(sample):
    data = sample(n_persons=9)
    np.testing.assert_allclose((identity_codes(data.persons) ** 2).sum(axis=0), 1.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "chi2"])
@pytest.mark.parametrize("new", [[4], [0, 8], [8], [1, 2, 3, 5, 6, 7]])
def test_people_added_count_as_if_fitted_at_once(sample, kernel, new):
    data = sample(n_persons=9, n_features=12)
    added = np.isin(data.persons, new)
    learner = IRS(kernel=kernel).fit(data.X[~added], data.persons[~added])
    learner.add_people(data.X[added], data.persons[added])
    # Bandwidth and ridge stay those of the first fit: the same numbers for the fit to everybody.
    order = np.concatenate([np.flatnonzero(~added), np.flatnonzero(added)])
    K = learner.kernel_.rows(data.X[order], data.X[order])
    whole = IRS(kernel="precomputed", reg=learner.ridge_ / K.diagonal().mean())
    whole.fit(K, data.persons[order])
    E = whole.transform(learner.kernel_.rows(data.X, data.X[order]))
    np.testing.assert_allclose(learner.transform(data.X), E, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.coef_, whole.coef_, atol=1e-9 * np.abs(E).max())
    np.testing.assert_array_equal(learner.persons_, np.unique(data.persons))
    assert learner.n_components_ == 9
    assert learner.n_sightings == len(data.X)


def test_one_after_the_other_is_all_at_once(sample):
    data = sample(n_persons=12, n_features=12)
    early = data.persons < 4
    both = [IRS().fit(data.X[early], data.persons[early]) for _ in range(2)]
    both[0].add_people(data.X[~early], data.persons[~early])
    for person in (9, 4, 11, 5, 6, 10, 7, 8):
        one = data.persons == person
        both[1].add_people(data.X[one], data.persons[one])
    E, F = (learner.transform(data.X) for learner in both)
    np.testing.assert_allclose(E, F, rtol=0, atol=1e-10)


def test_the_first_people_may_be_added_too(sample):
    data = sample()
    E = IRS().add_people(data.X, data.persons).transform(data.X)
    np.testing.assert_array_equal(E, IRS().fit(data.X, data.persons).transform(data.X))


def test_what_cannot_be_added_is_refused_and_changes_nothing(sample):
    data = sample()
    learner = IRS().fit(data.X, data.persons)
    before = learner.transform(data.X)
    with pytest.raises(InputError, match=r"10 people were learned from before, such as 0"):
        learner.add_people(data.X, data.persons)
    with pytest.raises(ValueError, match="features"):
        learner.add_people(data.X[:, 1:], data.persons + 100)
    with pytest.raises(ValueError, match="NaN"):
        learner.add_people(np.full((2, 6), np.nan), [100, 100])
    np.testing.assert_array_equal(learner.transform(data.X), before)
    K = data.X @ data.X.T
    with pytest.raises(InputError, match="fit again on the larger matrix"):
        IRS(kernel="precomputed").fit(K, data.persons).add_people(K, data.persons + 100)


def test_a_kernel_that_is_not_positive_definite(sample):
    data = sample()
    with pytest.raises(InputError, match="larger reg"):
        IRS(kernel=lambda A, B: 1.0 - A @ B.T, reg=1e-9).fit(data.X, data.persons)


def test_people_are_added_to_a_saved_model(sample, tmp_path):
    data = sample(n_persons=12, n_features=12)
    early = data.persons < 8
    model = Model((), IRS()).fit(data.X[early], data.persons[early], data.cameras[early])
    before = model.fingerprint
    model.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    for one in (model, loaded):
        one.add_people(data.X[~early], data.persons[~early], data.cameras[~early])
    np.testing.assert_array_equal(loaded.embed(data.X), model.embed(data.X))
    assert loaded.fingerprint == model.fingerprint != before
