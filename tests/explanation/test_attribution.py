"""Parts add up to the distance, for every learner of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import resight
from resight import KXQDA, XQDA, AutoKXQDA, BlockNormalizer, registry
from resight.errors import InputError
from resight.explanation.attribution import (
    EXACT,
    INTEGRATED,
    LEFT_OUT,
    _fused_views,
    integrated_gradients,
    metric_of,
    opaque,
)
from resight.kernels import Kernel
from resight.learners._base import KernelMetricLearner
from resight.learners.euclidean import Euclidean
from resight.models.model import Model
from resight.tuning.candidates import XQDA as LINEAR_XQDA
from resight.tuning.settings import Part, Setting

pytestmark = [
    pytest.mark.filterwarnings("ignore:the null space is empty"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N_FEATURES = 60
GROUPS = np.arange(N_FEATURES) % 7
EVERY = dict.fromkeys(
    spec.class_name
    for spec in registry.LEARNERS.values()
    if spec.name not in ("euclidean", "auto")  # tested apart
)
LEARNERS = [name for name in EVERY if getattr(resight, name).affine]


def made(name: str, **params: Any) -> Any:
    return getattr(resight, name)(**params)


def is_kernel(name: str) -> bool:
    return isinstance(made(name), KernelMetricLearner)


def sightings(n_people: int = 30) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    persons = np.tile(np.arange(n_people), 2)
    looks = rng.uniform(size=(n_people, N_FEATURES))
    X = looks[persons] + 0.2 * rng.uniform(size=(2 * n_people, N_FEATURES))
    return X, persons, np.repeat([0, 1], n_people)


def fitted(learner: Any, dtype: Any = np.float64, normalize: bool = True) -> tuple[Any, Any]:
    X, persons, cameras = sightings()
    model = Model((), learner, normalize=normalize)
    if normalize:
        model.normalizer = BlockNormalizer((20, 40))
    return model.fit(X[:50].astype(dtype), persons[:50], cameras[:50]), X[50:].astype(dtype)


def divided(model: Any, new: Any) -> tuple[Any, Any, str]:
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


@pytest.mark.parametrize("name", [name for name in EVERY if name not in LEARNERS])
def test_embeddings_that_bend_are_looked_at_from_outside(name: str) -> None:
    model, new = fitted(made(name))
    assert metric_of(model).method == LEFT_OUT
    one = metric_of(model).divide(*map(metric_of(model).normalize, (new[:5], new[5:])), GROUPS * 0)
    np.testing.assert_allclose(one[:, 0], np.diagonal(model.distances(new[:5], new[5:])))


def test_the_definition_of_the_exact_parts() -> None:
    model, new = fitted(XQDA())
    x = model.normalizer.transform(new)
    D = x[:5] - x[5:]
    M = model.learner.components_ @ model.learner.components_.T
    by_hand = D * (D @ M)
    expected = np.stack([by_hand[:, g == GROUPS].sum(axis=1) for g in range(7)], axis=1)
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
            way = np.where(g == GROUPS, half, 0.0)
            ahead, behind = (
                model.learner.distances(middle + t * half + s * way, middle - t * half - s * way)
                for s in (step, -step)
            )
            by_hand[g] += weight * (ahead - behind).item() / (2 * step)
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


BLOCK_BY_BLOCK = Setting(((1.0, Part("kxqda", (1.0, 1.0), (LINEAR_XQDA,), blocks=True)),)).as_dict()


@pytest.mark.parametrize("setting", [None, BLOCK_BY_BLOCK])
def test_members_of_an_automatic_choice_add_up(setting: Any) -> None:
    learner = AutoKXQDA(blocks=[(20,), (10, 30)], n_folds=2, n_repeats=1, setting=setting)
    model, new = fitted(learner, normalize=False)
    parts, own, method = divided(model, new)
    assert method in (EXACT, INTEGRATED)
    np.testing.assert_allclose(parts.sum(axis=1), own, rtol=1e-6)
    one = opaque(model).divide(new[:5], new[5:], np.zeros(N_FEATURES, np.intp))
    np.testing.assert_allclose(one[:, 0], own)


def test_training_rows_are_the_normalised_ones() -> None:
    X, _, _ = sightings()
    model, _ = fitted(KXQDA())
    expected = model.normalizer.transform(X[:50])
    rows: Any = metric_of(model).training_rows
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    assert metric_of(fitted(XQDA())[0]).training_rows is None


def test_a_precomputed_kernel_has_no_features() -> None:
    X, persons, cameras = sightings()
    model = Model((), KXQDA(kernel="precomputed"), normalize=False)
    model.fit(X @ X.T, persons, cameras)
    with pytest.raises(InputError, match="train it on features"):
        metric_of(model)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_fused_kernels_are_sums_of_views(kernel: str, mean: bool) -> None:
    """The distance by the definition of the fused kernel, descriptor by descriptor."""
    rng = np.random.default_rng(0)
    Z, C = rng.normal(size=(12, N_FEATURES)) / 5, rng.normal(size=(12, 4))
    a, b = rng.normal(size=(2, 1, N_FEATURES)) / 5
    weights, columns = [0.5, 2.0], [slice(0, 20), slice(20, 60)]
    scales = [np.r_[np.full(20, 0.5), np.full(40, 2.0)]]
    if mean:
        scales = [np.r_[np.ones(20), np.zeros(40)], np.r_[np.zeros(20), np.ones(40)]]
    kernels = [Kernel(kernel, gamma=0.7) for _ in scales]
    for one, scale in zip(kernels, scales, strict=True):
        one.fit_matrix(Z * np.sqrt(scale))

    def values(x: Any) -> Any:
        if not mean:
            return kernels[0].rows(x * np.sqrt(scales[0]), Z * np.sqrt(scales[0]))
        own = [k.rows(x[:, c], Z[:, c]) for k, c in zip(kernels, columns, strict=True)]
        return sum(w * v for w, v in zip(weights, own, strict=True)) / sum(weights)

    views = _fused_views(weights, mean, kernels, [0, 20, 60])
    parts = integrated_gradients(views, Z, C, a, b)
    distance = np.square((values(a) - values(b)) @ C).sum()
    assert parts.sum() == pytest.approx(distance, rel=1e-8)
