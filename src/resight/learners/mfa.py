"""Marginal Fisher analysis, of descriptors and in the feature space of a kernel."""

from __future__ import annotations

import numpy as np

from resight.learners._base import Codes, Floats, KernelMetricLearner, squared_euclidean
from resight.learners._graphs import (
    kernel_distances,
    leading_directions,
    marginal_graphs,
    shrunk_directions,
)
from resight.learners._parameters import Components, Count, NotNegative, Share
from resight.learners._subspace import PCAMetricLearner

#: Directions with a smaller ratio of scatters tell nothing apart.
SMALLEST_RATIO = 1e-10


class MFA(PCAMetricLearner):
    """Bring sightings of one person together and push the nearest of other persons away.

    It does not use ``cameras``.

    Parameters
    ----------
    n_components : int, default=40
        Directions to keep, at most.
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    within_neighbors : int or None, default=None
        Nearest sightings of the same person that a sighting is joined to; None is all of them.
    between_neighbors : int or None, default=None
        Nearest sightings of other persons that a sighting is joined to; None is all of them.
    reg : float, default=0.1
        Added to the diagonal of the within scatter. It is absolute: it depends on the scale of
        the features.

    Attributes
    ----------
    mean_, components_
        As in `LFDA`.
    eigenvalues_ : ndarray of shape (n_components_,)
        Ratios of penalty to intrinsic scatter, descending.

    Notes
    -----
    Solves X^T L_p X v = mu (X^T L_c X + reg I) v with L_c, L_p the Laplacians of the intrinsic and
    the penalty graph, and scales each v to unit length. Defaults are those of the public
    re-identification benchmark, whose graphs join all pairs; the margin of the paper is
    ``between_neighbors``.

    References
    ----------
    S. Yan et al., "Graph embedding and extensions: a general framework for dimensionality
    reduction", TPAMI 29(1), 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import MFA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> MFA().fit(X, persons).distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1
    learned = "eigenvalues_"

    n_components: Count = 40
    pca: Components = "auto"
    within_neighbors: Count | None = None
    between_neighbors: Count | None = None
    reg: NotNegative = 0.1

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        within, between = marginal_graphs(
            persons, lambda: squared_euclidean(Z, Z), self.within_neighbors, self.between_neighbors
        )
        S_c = within.scatter(Z) + self.reg * np.eye(Z.shape[1])  # (p, p)
        values, V = leading_directions(between.scatter(Z), S_c, self.n_components)
        kept = max(int(np.count_nonzero(values > SMALLEST_RATIO)), 1)
        self.eigenvalues_ = values[:kept]
        return V[:, :kept] / np.linalg.norm(V[:, :kept], axis=0)  # (p, r)


class KernelMFA(KernelMetricLearner):
    """Marginal Fisher analysis in the feature space of a kernel.

    It does not use ``cameras``.

    Parameters
    ----------
    n_components : int, default=30
        Directions to keep, at most.
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`.
    within_neighbors : int or None, default=None
        Nearest sightings of the same person that a sighting is joined to; None is all of them.
    between_neighbors : int or None, default=12
        Nearest sightings of other persons that a sighting is joined to; None is all of them.
    reg : float, default=0.01
        S_c becomes (1 - reg) S_c + reg tr(S_c) / N I.

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_components_)
        The embedding is the kernel row against the training set times ``coef_``.
    eigenvalues_
        As in `MFA`.

    Notes
    -----
    Solves K L_p K v = mu (K L_c K)_reg v. Defaults are its authors' (12 neighbours, 30
    directions); a later public benchmark uses ``between_neighbors=None, n_components=40``.

    References
    ----------
    That of `KernelLFDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KernelMFA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> KernelMFA().fit(X, persons).distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1
    learned = "eigenvalues_"

    n_components: Count = 30
    within_neighbors: Count | None = None
    between_neighbors: Count | None = 12
    reg: Share = 0.01

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        graphs = marginal_graphs(
            persons, lambda: kernel_distances(K), self.within_neighbors, self.between_neighbors
        )
        self.eigenvalues_, self.coef_ = shrunk_directions(K, graphs, self.reg, self.n_components)
