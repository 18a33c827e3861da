"""How much each feature adds to a learned distance: exact where linear, integrated elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.explanation.kernel_path import integrated_gradients, times_rows
from resight.kernels import OF_PRODUCTS, inner_products
from resight.learners._base import KernelMetricLearner, MetricLearner
from resight.learners.euclidean import Euclidean
from resight.learners.kissme import KISSME
from resight.learners.xqda import XQDA

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]

EXACT = "exact"
INTEGRATED = "integrated gradients"
LEFT_OUT = "leave part out"
METHODS = (EXACT, INTEGRATED, LEFT_OUT)  # from the soundest to the roughest


@dataclass(frozen=True)
class Term:
    """One learner whose distance, of rows times `scale` and divided by `unit`, is added."""

    learner: MetricLearner
    scale: Any = 1.0  # number or array (n_features,)
    unit: float = 1.0

    @property
    def method(self) -> str:
        """How its distance is divided among features."""
        if _linear_map(self.learner) is not None:
            return EXACT
        kernel = getattr(getattr(self.learner, "kernel_", None), "kernel", None)
        return INTEGRATED if isinstance(kernel, str) and kernel in OF_PRODUCTS else LEFT_OUT

    def distances(self, A: Floats, B: Floats) -> Floats:
        """Return the distance of each row of A from the same row of B, (n,)."""
        found = self.learner.distances(A * self.scale, B * self.scale)
        return np.diagonal(found) / self.unit

    def features(self, A: Floats, B: Floats) -> Floats:
        """Return what each feature adds to the distance of each pair, (n_pairs, n_features)."""
        A, B = A * self.scale, B * self.scale
        if self.method == EXACT:
            return _exact(self.learner, A - B) / self.unit
        return integrated_gradients(self.learner, A, B) / self.unit


@dataclass(frozen=True)
class Metric:
    """A fitted model as a sum of terms over normalised features, which it divides into parts."""

    normalize: Callable[[Any], Floats]
    terms: tuple[Term, ...]

    @property
    def method(self) -> str:
        """The roughest method that any of its terms needs."""
        return max((term.method for term in self.terms), key=METHODS.index)

    def distances(self, A: Floats, B: Floats) -> Floats:
        """Return the distance of each row of A from the same row of B, (n,)."""
        return np.sum([term.distances(A, B) for term in self.terms], axis=0)

    def divide(self, A: Floats, B: Floats, groups: Groups) -> Floats:
        """Divide the distance of each pair of rows among groups of features, (n_pairs, n_groups).

        Parameters
        ----------
        A, B : arrays (n_pairs, n_features)
            Normalised features.
        groups : int array (n_features,)
            The group of each feature: 0, 1, 2, ...
        """
        n_groups = int(groups.max()) + 1
        if self.method == LEFT_OUT:
            return np.array([self._left_out(a, b, groups) for a, b in zip(A, B, strict=True)])
        total = np.zeros((len(A), n_groups))
        for term in self.terms:
            for row, of_features in zip(total, term.features(A, B), strict=True):
                row += np.bincount(groups, weights=of_features, minlength=n_groups)
        return total

    def _left_out(self, a: Floats, b: Floats, groups: Groups) -> Floats:
        """By how much the distance falls when a group is the same (its mean) in both rows."""
        n_groups = int(groups.max()) + 1
        same = groups[None, :] == np.arange(n_groups + 1)[:, None]  # (n_groups + 1, n_features)
        middle = (a + b) / 2.0
        distances = self.distances(np.where(same, middle, a), np.where(same, middle, b))
        return distances[-1] - distances[:-1]  # the last left nothing out


def metric_of(model: Any) -> Metric:
    """Take a fitted model apart: one term, or those of the learners that it is made of."""
    learner = model.learner
    if getattr(learner, "kernel", None) == "precomputed":
        raise InputError(
            "this learner was fitted on a precomputed kernel and has never seen features, so none "
            "can be named; fit it on features"
        )
    if not hasattr(learner, "members_"):
        return opaque(model)
    terms = tuple(
        Term(member, scale, unit)
        for member, (scale, unit) in zip(learner.members_, learner.scales_, strict=True)
    )
    return Metric(_normalizing(model.normalizer, learner.normalizer_), terms)


def opaque(model: Any) -> Metric:
    """Take the model's learner as one term, whatever is inside."""
    return Metric(_normalizing(model.normalizer), (Term(model.learner),))


def n_training_rows(metric: Metric) -> int:
    """Count the training rows that the terms keep; kernel learners keep theirs."""
    return max((len(rows) for _, rows in _kept(metric)), default=0)


def training_rows(metric: Metric, chosen: Groups) -> Floats:
    """Return some normalised training rows, (len(chosen), n_features).

    Columns that no term weighs are zero: they do not matter for any distance.
    """
    kept = _kept(metric)
    found = np.zeros((len(chosen), kept[0][1].shape[1]))
    for term, rows in kept:
        scale = np.broadcast_to(term.scale, found.shape[1:])
        used = scale > 0
        found[:, used] = rows[chosen][:, used] / scale[used]
    return found


def _kept(metric: Metric) -> list[tuple[Term, NDArray[Any]]]:
    rows = [(term, getattr(term.learner, "X_fit_", None)) for term in metric.terms]
    return [(term, kept) for term, kept in rows if kept is not None]


def _normalizing(outer: Any, inner: Any = None) -> Callable[[Any], Floats]:
    """Normalise as the model does: in its own precision first, in float64 inside a learner."""

    def normalize(features: Any) -> Floats:
        given = np.asarray(features)
        rows = np.asarray(given if outer is None else outer.transform(given), np.float64)
        return rows if inner is None else np.asarray(inner.transform(rows))

    return normalize


@dataclass(frozen=True)
class _LinearMap:
    """Distances d = (P^T delta)^T M (P^T delta): the two products with P, and M (None = I)."""

    down: Callable[[Floats], Floats]  # (n, n_features) -> (n, r)
    up: Callable[[Floats], Floats]  # (n, r) -> (n, n_features)
    metric: Floats | None = None


def _linear_map(learner: MetricLearner) -> _LinearMap | None:
    if isinstance(learner, Euclidean):
        return _LinearMap(lambda D: D, lambda U: U)
    if isinstance(learner, KernelMetricLearner):
        if learner.kernel != "linear":
            return None
        Z, C = np.asarray(learner.X_fit_), learner.coef_  # P = Z^T C is never formed
        return _LinearMap(lambda D: inner_products(D, Z) @ C, lambda U: times_rows(U @ C.T, Z))
    P = getattr(learner, "components_", None)
    if P is None:
        return None
    metric = None
    if (isinstance(learner, XQDA) and learner.metric_ is not None) or (
        isinstance(learner, KISSME) and not learner.psd
    ):
        form = np.asarray(learner.metric_)
        metric = (form + form.T) / 2.0
    return _LinearMap(lambda D: D @ P, lambda U: U @ P.T, metric)


def _exact(learner: MetricLearner, D: Floats) -> Floats:
    """delta_f [P M P^T delta]_f for each pair and feature, (n_pairs, n_features)."""
    linear = _linear_map(learner)
    if linear is None:
        raise InputError(f"{type(learner).__name__} is not linear in the features")
    U = linear.down(D)  # (n_pairs, r)
    return D * linear.up(U if linear.metric is None else U @ linear.metric)
