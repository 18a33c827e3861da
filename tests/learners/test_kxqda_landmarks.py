"""k-XQDA through landmarks: exact when all are landmarks, additive in people, honest in limits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

import resight
from resight import KXQDA
from resight.errors import InputError
from resight.learners import _landmark_sums, _landmarks, kxqda
from resight.learners._landmarks import OVERSAMPLING

FORMS = [("identity", 1e-4), ("kernel", 1e-3), ("relative", 1e-3)]


@parametrize_with_checks([KXQDA(landmarks=8)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_parameters_are_declared_and_checked():
    check_param_validation("KXQDA", KXQDA(landmarks=8))


@pytest.fixture
def data(sample):
    return sample(n_persons=24, n_features=30, most=3)


@pytest.fixture
def test_rows(sample):
    return sample(n_persons=10, n_features=30, seed=9).X


def gap(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def spread(learner, rows):
    return learner.distances(rows[:12], rows[12:])


@pytest.mark.parametrize("with_cameras", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "exp"])
@pytest.mark.parametrize(("reg_form", "reg"), FORMS)
def test_all_sightings_as_landmarks_are_the_exact_fit(
    data, test_rows, kernel, reg_form, reg, with_cameras
):
    cameras = data.cameras if with_cameras else None
    settings = {"kernel": kernel, "reg": reg, "reg_form": reg_form}
    exact = KXQDA(solver="dense", **settings).fit(data.X, data.persons, cameras)
    seen = KXQDA(landmarks=len(data.X), **settings).fit(data.X, data.persons, cameras)
    assert gap(spread(seen, test_rows), spread(exact, test_rows)) < 1e-6
    np.testing.assert_allclose(seen.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    assert (seen.solver_, exact.solver_) == ("landmarks", "dense")


def test_fewer_landmarks_come_closer_the_more_there_are(data, test_rows):
    settings = {"reg": 1e-2, "reg_form": "relative"}
    exact = spread(KXQDA(**settings).fit(data.X, data.persons, data.cameras), test_rows)
    gaps = [
        gap(
            spread(
                KXQDA(landmarks=m, **settings).fit(data.X, data.persons, data.cameras), test_rows
            ),
            exact,
        )
        for m in (10, 40, len(data.X))
    ]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("with_cameras", [True, False])
@pytest.mark.parametrize(("reg_form", "reg"), FORMS)
def test_adding_people_later_equals_fitting_at_once(
    data, test_rows, monkeypatch, reg_form, reg, with_cameras
):
    """With the same landmarks: those of the first people."""
    names = np.array(["door", "yard"])[data.cameras]
    labels = np.array([f"person {code:02d}" for code in data.persons])
    groups = [data.persons < 12, (data.persons >= 12) & (data.persons < 18), data.persons >= 18]
    later = KXQDA(landmarks=20, reg=reg, reg_form=reg_form)
    for rows in groups:
        later.add_people(data.X[rows], labels[rows], names[rows] if with_cameras else None)
    order = np.concatenate([np.flatnonzero(rows) for rows in groups])
    # The first people's rows come first, so their landmarks are the same rows of the whole.
    monkeypatch.setattr(kxqda, "landmark_rows", lambda *_: later.landmarks_)
    at_once = clone(later)
    at_once.fit(data.X[order], labels[order], names[order] if with_cameras else None)
    assert gap(spread(later, test_rows), spread(at_once, test_rows)) < 1e-9
    np.testing.assert_array_equal(later.persons_, at_once.persons_)
    for name in ("similar", "moments", "sums"):
        assert gap(getattr(later.statistics_, name), getattr(at_once.statistics_, name)) < 1e-9


def test_chunks_do_not_change_the_fit(data, test_rows, monkeypatch):
    whole = KXQDA(landmarks=20, reg=1e-3).fit(data.X, data.persons, data.cameras)
    monkeypatch.setattr(_landmark_sums, "CHUNK_ROWS", 7)
    cut = KXQDA(landmarks=20, reg=1e-3).fit(data.X, data.persons, data.cameras)
    assert gap(spread(cut, test_rows), spread(whole, test_rows)) < 1e-9


def test_a_precomputed_kernel_gives_the_same(data, test_rows):
    K = np.exp(data.X @ data.X.T / 30)
    rows = np.exp(test_rows @ data.X.T / 30)
    matrix = KXQDA(kernel="precomputed", landmarks=20, reg=1e-3)
    matrix.fit(K, data.persons, data.cameras)
    function = KXQDA(kernel=lambda A, B: np.exp(A @ B.T / 30), landmarks=20, reg=1e-3)
    function.fit(data.X, data.persons, data.cameras)
    assert gap(spread(matrix, rows), spread(function, test_rows)) < 1e-9
    with pytest.raises(InputError, match="square"):
        matrix.fit(K[:, :-1], data.persons, data.cameras)


def test_people_are_added_to_a_loaded_model(data, test_rows, tmp_path):
    early = data.persons < 12
    learner = KXQDA(landmarks=20, reg=1e-3)
    learner.fit(data.X[early], data.persons[early], data.cameras[early])
    learner.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    before = learner.training_fingerprint_
    for one in (learner, loaded):
        one.add_people(data.X[~early], data.persons[~early], data.cameras[~early])
    np.testing.assert_array_equal(spread(loaded, test_rows), spread(learner, test_rows))
    assert learner.training_fingerprint_ == loaded.training_fingerprint_ != before


def test_embeddings_are_centred_and_few_components_lead(data):
    full = KXQDA(landmarks=30, reg=1e-3).fit(data.X, data.persons, data.cameras)
    few = KXQDA(landmarks=30, reg=1e-3, n_components=3).fit(data.X, data.persons, data.cameras)
    embedding = full.transform(data.X)
    assert np.abs(embedding.mean(axis=0)).max() < 1e-9 * np.abs(embedding).max()
    np.testing.assert_allclose(few.transform(data.X), embedding[:, :3], atol=1e-9)


def test_the_model_keeps_the_landmarks_only(data):
    learner = KXQDA(landmarks=20).fit(data.X, data.persons, data.cameras)
    n = 20 * OVERSAMPLING
    assert len(data.X) > n
    assert learner.X_fit_.shape == (n, 30)
    assert learner.nystrom_.lift.shape == (n, 20)
    np.testing.assert_array_equal(learner.X_fit_, data.X[learner.landmarks_])
    assert learner.coef_.shape[0] == n


# What is refused, and what is announced


def test_more_landmarks_than_sightings(data):
    with pytest.raises(InputError, match=r"only \d+ training sightings"):
        KXQDA(landmarks=10**6).fit(data.X, data.persons, data.cameras)


def test_known_people_are_refused_and_change_nothing(data, test_rows):
    learner = KXQDA(landmarks=20, reg=1e-3).fit(data.X, data.persons, data.cameras)
    before = spread(learner, test_rows)
    with pytest.raises(InputError, match=r"24 people were learned from before.*fit again"):
        learner.add_people(data.X, data.persons, data.cameras)
    with pytest.raises(InputError, match="came with cameras"):
        learner.add_people(data.X, data.persons + 100)
    with pytest.raises(InputError, match="one camera for each row"):
        learner.add_people(data.X, data.persons + 100, data.cameras[1:])
    with pytest.raises(ValueError, match="29 features"):
        learner.add_people(data.X[:, 1:], data.persons + 100, data.cameras)
    np.testing.assert_array_equal(spread(learner, test_rows), before)


def test_an_exact_fit_has_nothing_to_add_to():
    assert not hasattr(KXQDA(), "add_people")
    assert hasattr(KXQDA(landmarks=5), "add_people")


def test_the_switch_to_landmarks_is_announced(data, monkeypatch):
    monkeypatch.setattr(_landmarks, "EXACT_LIMIT", len(data.X) - 1)
    monkeypatch.setattr(_landmarks, "DEFAULT_LANDMARKS", 20)
    with pytest.warns(UserWarning, match=r"landmarks=a number.*solver='dense' for an exact fit"):
        switched = KXQDA(reg=1e-3).fit(data.X, data.persons, data.cameras)
    assert switched.solver_ == "landmarks"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = KXQDA(reg=1e-3, landmarks=20).fit(data.X, data.persons, data.cameras)
        exact = KXQDA(reg=1e-3, solver="dense").fit(data.X, data.persons, data.cameras)
    np.testing.assert_array_equal(asked.transform(data.X), switched.transform(data.X))
    assert exact.solver_ == "dense"
    monkeypatch.setattr(_landmarks, "EXACT_LIMIT", len(data.X))
    assert KXQDA().fit(data.X, data.persons, data.cameras).solver_ != "landmarks"
