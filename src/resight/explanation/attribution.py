"""How much each part adds to a learned distance: exact where linear, integrated elsewhere.

What a network measures where cannot be read off its vector: there strips of both images are
covered, and nothing but distances is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.explanation.parts import N_BANDS
from resight.kernels import OF_PRODUCTS, Floats, Kernel, inner_products

Groups = NDArray[np.intp]

EXACT = "exact"
INTEGRATED = "integrated gradients"
LEFT_OUT = "leave part out"
_NODES = 32  # of the quadrature: the parts add up to about 1e-9 of the distance
_GREY = (124, 116, 104)  # ImageNet's mean, which most networks are shown as nothing


# What each feature adds to the distances of pairs of normalised rows, (n_pairs, n_features) each.
# Terms add up.
Term = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Metric:
    """The distance of a fitted model over normalised features, which it divides into parts.

    `divide` takes pairs of normalised rows, twice (n_pairs, n_features), and the group 0, 1, 2, ...
    of each feature, (n_features,); it returns what groups contribute, (n_pairs, n_groups).
    """

    normalize: Callable[[Any], Floats]  # of descriptors (n, n_features)
    method: str  # how the distance is divided
    divide: Callable[[Floats, Floats, Groups], Floats]
    training_rows: NDArray[Any] | None = None  # (n_train, n_features), if the learner keeps them


def _added_up(terms: Sequence[Term], A: Floats, B: Floats, groups: Groups) -> Floats:
    """Add up what the features of each group contribute."""
    n_groups = int(groups.max()) + 1
    of_features = np.sum([term(A, B) for term in terms], axis=0)
    rows = [np.bincount(groups, weights=row, minlength=n_groups) for row in of_features]
    return np.array(rows, np.float64).reshape(-1, n_groups)


def _falls(
    distances: Callable[[Floats, Floats], Floats], A: Floats, B: Floats, groups: Groups
) -> Floats:
    """Say by how much a distance falls when a group is the same (its mean) in both rows."""
    same = groups[None, :] == np.arange(int(groups.max()) + 2)[:, None]
    found = []
    for a, b in zip(A, B, strict=True):
        middle = (a + b) / 2.0
        left_out = np.diagonal(distances(np.where(same, middle, a), np.where(same, middle, b)))
        found.append(left_out[-1] - left_out[:-1])  # the last left nothing out
    return np.array(found)


def metric_of(model: Any) -> Metric:
    """Take the distance of a fitted model apart, as far as its learner is understood."""
    learner: Any = model.learner
    if getattr(learner, "kernel", None) == "precomputed":
        raise InputError(
            "this learner was trained on a precomputed kernel, so there are no "
            "features to explain; train it on features"
        )
    if hasattr(learner, "kernels_"):
        return _metric_of_auto(model)
    rows, term, method = getattr(learner, "X_fit_", None), _linear_term(learner), EXACT
    if term is None and rows is not None and learner.kernel in OF_PRODUCTS:
        term = partial(integrated_gradients, (View(learner.kernel_),), rows, learner.coef_)
        method = EXACT if learner.kernel == "linear" else INTEGRATED
    if term is None or not learner.affine:
        return replace(opaque(model), training_rows=rows)
    return Metric(_normalizing(model.normalizer), method, partial(_added_up, [term]), rows)


def opaque(model: Any) -> Metric:
    """Look at nothing but the distances that a model's learner gives."""
    divide = partial(_falls, model.learner.distances)
    return Metric(_normalizing(model.normalizer), LEFT_OUT, divide)


def _metric_of_auto(model: Any) -> Metric:
    """Take AutoKXQDA apart: learners on fused kernels, and distances that learn nothing.

    A cosine is of features that are not centred, so a mixture with one is not taken apart.
    """
    learner = model.learner
    if any(kernel.get("plain") == "cosine" for kernel in learner.kernels_):
        return opaque(model)
    terms: list[Term] = []
    linear = True
    for part, (kernel, coef) in enumerate(zip(learner.kernels_, learner.coefs_, strict=True)):
        if "plain" in kernel:
            terms.append(_of_difference(partial(learner.plain_shares, part=part)))
        else:
            views = _fused_views(**{"ends": learner.ends_, **kernel})
            terms.append(partial(integrated_gradients, views, learner.X_fit_, coef))
            linear &= all(view.kernel.kernel == "linear" for view in views)
    normalize = _normalizing(model.normalizer, learner.normalizer_)
    method, divide = EXACT if linear else INTEGRATED, partial(_added_up, terms)
    return Metric(normalize, method, divide, learner.X_fit_)


def _fused_views(
    weights: list[float], mean: bool, of: list[Any], ends: list[int]
) -> tuple[View, ...]:
    """Write a kernel over several descriptors as kernels over all features, some weighed 0."""
    widths = [stop - start for start, stop in pairwise(ends)]
    if not mean:
        return (View(of[0], np.repeat(weights, widths)),)
    used = [i for i, weight in enumerate(weights) if weight]
    return tuple(
        View(kernel, np.repeat(np.arange(len(widths)) == i, widths), weights[i] / sum(weights))
        for i, kernel in zip(used, of, strict=True)
    )


def _normalizing(outer: Any, inner: Any = None) -> Callable[[Any], Floats]:
    """Normalise as the model does: in its own precision first, in float64 inside a learner."""

    def normalize(features: Any) -> Floats:
        given = np.asarray(features)
        rows = np.asarray(given if outer is None else outer.transform(given), np.float64)
        return rows if inner is None else np.asarray(inner.transform(rows))

    return normalize


def _linear_term(learner: Any) -> Term | None:
    """Divide d = (P^T D)^T M (P^T D) by D_f [P M P^T D]_f, if the learner is linear."""
    if not learner.learns:
        return _of_difference(np.square)
    P = getattr(learner, "components_", None)
    if P is None:
        return None
    right, form = P.T, getattr(learner, "metric_", None)
    if form is not None and not getattr(learner, "psd", False):  # `components_` lack the metric
        right = (form + form.T) / 2.0 @ P.T
    return _of_difference(lambda D: D * (D @ P @ right))


def _of_difference(shares: Callable[[Floats], Floats]) -> Term:
    """Divide a distance that is linear or learns nothing: what each feature of a - b adds to it."""
    return lambda A, B: shares(A - B)


def occlude(model: Any, pair: NDArray[Any], images: Sequence[NDArray[np.uint8]]) -> Floats:
    """By how much the distance falls when one descriptor sees one strip covered, (n_parts,).

    `pair` (2, n_features) holds the descriptors of the two images as they are.
    """
    covered = [_covered(image, band) for image in images for band in range(N_BANDS)]
    described = model.describe(covered).reshape(2, N_BANDS, -1)
    ends = np.cumsum([0, *(part.n_features for part in model.descriptor.parts)])
    sides = []
    for whole, strips in zip(pair, described, strict=True):
        rows = np.repeat(whole[None], (len(ends) - 1) * N_BANDS, axis=0)
        for number, (start, stop) in enumerate(pairwise(ends)):
            part = slice(number * N_BANDS, (number + 1) * N_BANDS)
            rows[part, start:stop] = strips[:, start:stop]
        sides.append(np.concatenate([rows, whole[None]]))
    distances = np.diagonal(model.distances(*sides))
    return np.asarray(distances[-1] - distances[:-1])  # the last has nothing covered


def _covered(image: NDArray[np.uint8], band: int) -> NDArray[np.uint8]:
    edges = np.linspace(0, len(image), N_BANDS + 1).round().astype(int)
    other = image.copy()
    other[edges[band] : edges[band + 1]] = _GREY
    return other


@dataclass(frozen=True)
class View:
    """One kernel of a sum: of inner products sum_f scale_f x_f z_f, counted with a weight."""

    kernel: Kernel
    scale: Any = 1.0  # number or array (n_features,), not negative
    weight: float = 1.0


class _Path:
    """Pairs (a, b) in one view as midpoint m and difference D = a - b: all products needed."""

    def __init__(self, view: View, Z: NDArray[Any], middle: Floats, difference: Floats) -> None:
        self.kernel = view.kernel
        scale = np.broadcast_to(np.asarray(view.scale, np.float64), Z.shape[1:])
        scaled_middle, scaled_difference = middle * scale, difference * scale
        self.middle_rows = inner_products(scaled_middle, Z)  # m . z, (n, N)
        self.difference_rows = inner_products(scaled_difference, Z)  # D . z, (n, N)
        self.middle_squares = np.einsum("ij,ij->i", scaled_middle, middle)  # (n,)
        self.crossed = np.einsum("ij,ij->i", scaled_middle, difference)  # m . D, (n,)
        self.difference_squares = np.einsum("ij,ij->i", scaled_difference, difference)  # (n,)
        # z . z, (N,)
        self.row_squares = np.array([np.square(row, dtype=np.float64) @ scale for row in Z])

    def at(self, t: float) -> tuple[Floats, Any, Any]:
        """Kernel values (n, N) at x = m + t D / 2, and their derivatives by x.z and by x.x."""
        kernel = self.kernel
        products = self.middle_rows + (t / 2.0) * self.difference_rows
        if kernel.kernel == "linear":
            return products, 1.0, 0.0
        gamma = float(kernel.gamma_ or 0.0)
        if kernel.kernel == "poly":
            inside = gamma * products + kernel.coef0
            slope = kernel.degree * gamma * inside ** (kernel.degree - 1)
            return inside**kernel.degree, slope, 0.0
        squares = self.middle_squares + t * self.crossed
        squares = squares + (t * t / 4.0) * self.difference_squares  # x . x, (n,)
        apart = np.maximum(squares[:, None] + self.row_squares - 2.0 * products, 0.0)
        if kernel.kernel == "rbf":
            values = np.exp(-gamma * apart)
            return values, 2.0 * gamma * values, -gamma * values
        lengths = np.sqrt(apart)  # "exp"
        values = np.exp(-gamma * lengths)
        slope = gamma * values / np.maximum(lengths, np.finfo(np.float64).eps)
        return values, slope, -slope / 2.0


def integrated_gradients(
    views: Sequence[View], Z: NDArray[Any], C: Floats, A: Floats, B: Floats
) -> Floats:
    """Divide the distances of pairs of rows among the features, (n_pairs, n_features).

    The weighted sum of the views is the kernel k; the embedding of x is k(x, Z) C with training
    rows Z (N, n_features) and C (N, n_components).

    The path moves both rows from their midpoint m, where their distance is zero, apart to a and
    b: m + t D / 2 and m - t D / 2, D = a - b, t from 0 to 1. The gradient of the distance
    along it, integrated and multiplied feature by feature with the way, adds up to the distance
    (completeness; Sundararajan, Taly and Yan, "Axiomatic attribution for deep networks", ICML
    2017). For the linear kernel it is the exact decomposition. Gradients are sums of training
    rows whose weights are added up over the nodes first, so any number of nodes costs two
    products with the training rows and one back.
    """
    middle, difference = (A + B) / 2.0, A - B
    paths = [_Path(view, Z, middle, difference) for view in views]
    # Of each view the gradient is rows @ Z + of_middle m + of_difference D.
    rows = np.zeros((len(views), len(A), len(Z)))
    of_middle, of_difference = np.zeros((2, len(views), len(A), 1))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)  # on [-1, 1]
    for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        ends = [(path.at(t), path.at(-t)) for path in paths]
        change = sum(view.weight * (a[0] - b[0]) for view, (a, b) in zip(views, ends, strict=True))
        slope = weight * ((change @ C) @ C.T)  # (n, N): half the gradient by kernel values
        for i, (view, (a, b)) in enumerate(zip(views, ends, strict=True)):
            v = view.weight * slope
            rows[i] += v * (a[1] + b[1])
            of_middle[i] += 2.0 * np.sum(v * (a[2] + b[2]), axis=1, keepdims=True)
            of_difference[i] += t * np.sum(v * (a[2] - b[2]), axis=1, keepdims=True)
    contributions = np.zeros_like(middle)
    for i, view in enumerate(views):
        gradient = times_rows(rows[i], Z) + of_middle[i] * middle + of_difference[i] * difference
        contributions += difference * gradient * view.scale
    return contributions


def times_rows(weights: Floats, Z: NDArray[Any], at_once: int = 2048) -> Floats:
    """Return weights @ Z in float64 without a second copy of Z, (n, n_features)."""
    product = np.empty((len(weights), Z.shape[1]))
    for start in range(0, Z.shape[1], at_once):
        columns = slice(start, start + at_once)
        product[:, columns] = weights @ Z[:, columns].astype(np.float64, copy=False)
    return product
