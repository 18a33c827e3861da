"""Kernel local Fisher discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resight.errors import InputError
from resight.learners._base import Codes, Floats, KernelMetricLearner
from resight.learners._graphs import (
    check_persons,
    fisher_graphs,
    leading_directions,
    person_blocks,
    shrink,
)
from resight.learners._parameters import Count, Share
from resight.learners.lfda import local_affinity


@dataclass(kw_only=True, eq=False, repr=False)
class KernelLFDA(KernelMetricLearner):
    """Local Fisher discriminant analysis in the feature space of a kernel.

    It does not use ``cameras``.

    Parameters
    ----------
    n_components : int, default=40
        Directions to keep, at most.
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`.
    n_neighbors : int, default=6
        The neighbour, among all sightings, whose distance is a sighting's local scale.
    reg : float, default=0.01
        S_w becomes (1 - reg) S_w + reg tr(S_w) / N I.

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_components_)
        The embedding is the kernel row against the training set times ``coef_``.
    eigenvalues_ : ndarray of shape (n_components_,)
        Ratios of local between to local within scatter, descending.

    Notes
    -----
    With K the kernel matrix and L_w, L_b the graphs of LFDA, solves
    K L_b K v = mu (K L_w K)_reg v. Unlike LFDA, and as its authors' code, a local scale looks at
    all sightings, not only at the person's own.

    References
    ----------
    F. Xiong, M. Gou, O. Camps, M. Sznaier, "Person re-identification using kernel-based metric
    learning methods", ECCV 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KernelLFDA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> KernelLFDA().fit(X, persons).distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1
    learned = "eigenvalues_"

    n_components: Count = 40
    n_neighbors: Count = 6
    reg: Share = 0.01

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        n = len(K)
        if self.n_neighbors >= n:
            raise InputError(
                f"n_neighbors={self.n_neighbors}, but each of the {n} sightings has {n - 1} "
                f"others; give at most {n - 1}"
            )
        D2 = kernel_distances(K)  # (N, N)
        # Position 0 of a sorted row is the sighting itself.
        scales = np.sqrt(np.partition(D2, self.n_neighbors, axis=1)[:, self.n_neighbors])
        affinity = person_blocks(
            persons, lambda m: local_affinity(D2[np.ix_(m, m)], scales[m], scales[m])
        )
        within, between = fisher_graphs(persons, affinity)
        S_w = shrink(within.scatter(K), self.reg, n)
        self.eigenvalues_, self.coef_ = leading_directions(
            between.scatter(K), S_w, self.n_components
        )


def kernel_distances(K: Floats) -> Floats:
    """Squared distances in feature space: K_ii + K_jj - 2 K_ij, (N, N)."""
    squares = K.diagonal()
    return np.maximum(squares[:, None] + squares[None, :] - 2.0 * K, 0.0)
