"""Parts add up to the distance, for every learner of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import resight
from resight import KXQDA, XQDA, AutoKXQDA, BlockNormalizer
from resight.errors import InputError
from resight.explanation.attribution import (
    EXACT,
    INTEGRATED,
    LEFT_OUT,
    metric_of,
    n_training_rows,
    opaque,
    training_rows,
)
from resight.learners._base import KernelMetricLearner
from resight.learners.euclidean import Euclidean
from resight.model import Model

pytestmark = [
    pytest.mark.filterwarnings("ignore:the null space is empty"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N_FEATURES = 60
GROUPS = np.arange(N_FEATURES) % 7
LEARNERS = [
    name
    for name, home in resight._HOME.items()
    if home.startswith("resight.learners.") and name != "BlockNormalizer"
]


def made(name: str, **params: Any) -> Any:
    return getattr(resight, name)(**params)


def is_kernel(name: str) -> bool:
    return isinstance(made(name), KernelMetricLearner)


def sightings(n_people: int = 25) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    persons = np.tile(np.arange(n_people), 2)
    looks = rng.uniform(size=(n_people, N_FEATURES))
    X = looks[persons] + 0.2 * rng.uniform(size=(2 * n_people, N_FEATURES))
    return X, persons, np.repeat([0, 1], n_people)


def fitted(learner: Any, dtype: Any = np.float64, normalize: bool = True) -> tuple[Model, Any]:
    X, persons, cameras = sightings()
    model = Model((), learner, normalize=normalize)
    if normalize:
        model.normalizer = BlockNormalizer((20, 40))
    return model.fit(X[:40].astype(dtype), persons[:40], cameras[:40]), X[40:].astype(dtype)


def divided(model: Model, new: Any) -> tuple[Any, Any, str]:
    metric = metric_of(model)
    A, B = metric.normalize(new[:5]), metric.normalize(new[5:])
    own = np.diagonal(model.distances(new[:5], new[5:]))
    return metric.divide(A, B, GROUPS), own, metric.method


LINEAR = [
    *(made(name) for name in LEARNERS if not is_kernel(name)),
    *(made(name, kernel="linear") for name in LEARNERS if is_kernel(name)),
    XQDA(solver="svd"),
    made("KISSME", psd=False),
    Euclidean(),
]


@pytest.mark.parametrize("learner", LINEAR, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_linear_learners_are_divided_exactly(learner: Any, dtype: Any) -> None:
    parts, own, method = divided(*fitted(learner, dtype))
    assert method == EXACT
    assert parts.shape == (5, 7)
    np.testing.assert_allclose(parts.sum(axis=1), own, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in LEARNERS if is_kernel(name)])
@pytest.mark.parametrize(
    "kernel", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 3}, {"kernel": "exp"}], ids=str
)
def test_kernels_of_inner_products_add_up_along_the_path(name: str, kernel: Any) -> None:
    parts, own, method = divided(*fitted(made(name, **kernel)))
    assert method == INTEGRATED
    np.testing.assert_allclose(parts.sum(axis=1), own, rtol=1e-6)


def test_the_definition_of_the_exact_parts() -> None:
    model, new = fitted(XQDA())
    x = model.normalizer.transform(new)
    D = x[:5] - x[5:]
    M = model.learner.components_ @ model.learner.components_.T
    by_hand = D * (D @ M)
    expected = np.stack([by_hand[:, GROUPS == g].sum(axis=1) for g in range(7)], axis=1)
    np.testing.assert_allclose(divided(model, new)[0], expected, rtol=1e-9, atol=1e-12)


def test_along_the_path_a_linear_metric_is_divided_exactly_too() -> None:
    """A polynomial of degree 1 is the linear kernel: both ways must agree."""
    exact = divided(*fitted(KXQDA(kernel="linear", reg=1e-3)))
    integrated = divided(*fitted(KXQDA(kernel="poly", degree=1, coef0=0.0, reg=1e-3)))
    assert (exact[2], integrated[2]) == (EXACT, INTEGRATED)
    np.testing.assert_allclose(integrated[0], exact[0], rtol=1e-7, atol=1e-9 * exact[1].max())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "exp"])
def test_gradients_are_those_of_the_distance(kernel: str) -> None:
    """Integrated by brute force: finite differences along the path, group by group."""
    model, new = fitted(KXQDA(kernel=kernel, reg=1e-3))
    metric = metric_of(model)
    a, b = metric.normalize(new)[:1], metric.normalize(new)[5:6]
    middle, half = (a + b) / 2, (a - b) / 2
    nodes, weights = np.polynomial.legendre.leggauss(40)
    by_hand, step = np.zeros(7), 1e-5
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        for g in range(7):
            way = np.where(GROUPS == g, half, 0.0)
            ahead, behind = (
                metric.distances(middle + t * half + s * way, middle - t * half - s * way)[0]
                for s in (step, -step)
            )
            by_hand[g] += weight * (ahead - behind) / (2 * step)
    found = metric.divide(a, b, GROUPS)[0]
    np.testing.assert_allclose(found, by_hand, atol=1e-4 * abs(found).max())


def test_other_kernels_leave_parts_out() -> None:
    model, new = fitted(KXQDA(kernel="chi2"), normalize=False)
    parts, own, method = divided(model, new)
    assert method == LEFT_OUT
    evened = new[[0, 5]].copy()
    evened[:, GROUPS == 2] = evened[:, GROUPS == 2].mean(axis=0)
    without = model.distances(evened[:1], evened[1:])[0, 0]
    assert parts[0, 2] == pytest.approx(own[0] - without, rel=1e-9)


def test_one_group_of_everything_is_the_distance() -> None:
    model, new = fitted(KXQDA(kernel="chi2-rbf"), normalize=False)
    parts = metric_of(model).divide(new[:5], new[5:], np.zeros(N_FEATURES, np.intp))
    np.testing.assert_allclose(parts[:, 0], np.diagonal(model.distances(new[:5], new[5:])))


def test_members_of_an_automatic_choice_add_up() -> None:
    learner = AutoKXQDA(blocks=[(20,), (40,)], n_folds=2, n_repeats=1)
    model, new = fitted(learner, normalize=False)
    parts, own, method = divided(model, new)
    assert method in (EXACT, INTEGRATED)
    np.testing.assert_allclose(parts.sum(axis=1), own, rtol=1e-6)
    whole = opaque(model)
    assert whole.method == LEFT_OUT
    np.testing.assert_allclose(whole.distances(new[:5], new[5:]), own)


def test_training_rows_come_back_from_the_members() -> None:
    X, _, _ = sightings()
    model, _ = fitted(KXQDA())
    metric = metric_of(model)
    chosen = np.array([3, 1])
    assert n_training_rows(metric) == 40
    np.testing.assert_allclose(
        training_rows(metric, chosen), model.normalizer.transform(X[chosen]), atol=1e-12
    )
    assert n_training_rows(metric_of(fitted(XQDA())[0])) == 0


def test_a_precomputed_kernel_has_no_features() -> None:
    X, persons, cameras = sightings()
    model = Model((), KXQDA(kernel="precomputed"), normalize=False)
    model.fit(X @ X.T, persons, cameras)
    with pytest.raises(InputError, match="fit it on features"):
        metric_of(model)
