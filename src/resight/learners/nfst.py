"""Null Foley-Sammon transform."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from resight.learners._base import Codes, Floats, MetricLearner
from resight.learners._foley_sammon import null_coefficients, null_directions
from resight.learners._graphs import check_persons
from resight.learners._subspace import CENTRED_BY_COLUMNS, Projection, centred_products, lift, pca


class NFST(MetricLearner):
    """Collapse each training person to one point: the directions without within scatter.

    It does not use ``cameras``.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        Orthonormal null directions; the embedding is ``(X - mean_) @ components_``. There is one
        less than persons when the training sightings are independent.

    Notes
    -----
    V^T S_w V = 0 and V^T S_b V > 0: a null direction of the scatter within persons in the span of
    the centred training rows. It needs more features than sightings minus persons; otherwise
    the null space is empty, and the direction of least scatter is used with a warning, as the
    published code does silently. The span is found exactly, whatever the number of features.

    References
    ----------
    L. Zhang, T. Xiang, S. Gong, "Learning a discriminative null space for person
    re-identification", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import NFST
    >>> X = np.random.default_rng(0).normal(size=(6, 20))
    >>> E = NFST().fit(X, [1, 1, 2, 2, 3, 3]).transform(X)
    >>> E.shape, bool(abs(E[0] - E[1]).max() < 1e-12)
    ((6, 2), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _dtypes = CENTRED_BY_COLUMNS
    state_version = 1
    turned = True
    learned = "mean_ components_"

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        self.mean_ = X.mean(axis=0, dtype=np.float64)
        if X.shape[1] > X.shape[0]:
            coefficients = null_coefficients(centred_products(X, self.mean_), persons)
            self.components_ = lift(X, self.mean_, coefficients)
        else:
            projection = pca(X, "full")
            self.components_ = projection.basis @ null_directions(projection(X), persons)
        self.n_components_ = self.components_.shape[1]

    def _embed(self, X: Floats) -> Floats:
        return Projection(self.mean_, self.components_)(X)
