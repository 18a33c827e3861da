"""Local Fisher discriminant analysis, of descriptors and in the feature space of a kernel."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg

from resight.errors import InputError
from resight.learners._base import Codes, Floats, KernelMetricLearner, squared_euclidean
from resight.learners._graphs import fisher_graphs, kernel_distances, shrunk_directions
from resight.learners._parameters import Components, Count, Share
from resight.learners._subspace import PCAMetricLearner


class LFDA(PCAMetricLearner):
    """Fisher analysis in which only sightings of a person that are alike must come together.

    It does not use ``cameras``.

    Parameters
    ----------
    n_components : int, default=40
        Directions to keep, at most; fewer where the data have fewer.
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    n_neighbors : int, default=7
        The neighbour (of the same person) whose distance is a sighting's local scale. A person
        with fewer sightings uses the farthest one.
    reg : float, default=0.1
        S_w becomes (1 - reg) S_w + reg tr(S_w) / N I.
    embedding : {"plain", "weighted", "orthonormalized"}, default="plain"
        Scaling of the directions: as the eigenproblem gives them (v^T S_w v = 1), times the root
        of their eigenvalue, or made orthonormal.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        The embedding is ``(X - mean_) @ components_``.
    eigenvalues_ : ndarray of shape (n_components_,)
        Ratios of local between to local within scatter, descending.

    Notes
    -----
    Maximises tr((V^T S_w V)^-1 V^T S_b V) with the local affinity
    A_ij = exp(-|x_i - x_j|^2 / (s_i s_j)) inside a person. The published regulariser divides the
    trace by the number of sightings N, not of dimensions; that is kept. metric-learn's version has
    no regulariser, which fails with two sightings a person.

    References
    ----------
    M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
    analysis", JMLR 8, 2007. S. Pedagadi et al., "Local Fisher discriminant analysis for pedestrian
    re-identification", CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import LFDA
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [9, 0], [9, 1]])
    >>> LFDA(n_components=1).fit(X, [1, 1, 2, 2, 3, 3]).transform(X).shape
    (6, 1)
    """

    state_version = 1
    learned = "eigenvalues_"

    n_components: Count = 40
    pca: Components = "auto"
    n_neighbors: Count = 7
    reg: Share = 0.1
    embedding: Literal["plain", "weighted", "orthonormalized"] = "plain"

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        graphs = fisher_graphs(persons, lambda members: self._affinity(Z[members]))
        self.eigenvalues_, V = shrunk_directions(Z, graphs, self.reg, self.n_components)
        if self.embedding == "weighted":
            V *= np.sqrt(np.maximum(self.eigenvalues_, 0.0))
        elif self.embedding == "orthonormalized":
            V = np.asarray(scipy.linalg.qr(V, mode="economic")[0], dtype=np.float64)
        return V  # (p, r)

    def _affinity(self, Z: Floats) -> Floats:
        """Affinities A_ij among the sightings Z of one person."""
        D2 = squared_euclidean(Z, Z)  # (n_c, n_c)
        neighbor = min(self.n_neighbors, len(Z) - 1)
        return _local_affinity(D2, np.sqrt(np.partition(D2, neighbor, axis=1)[:, neighbor]))


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
    eigenvalues_
        As in `LFDA`.

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
        n = len(K)
        if self.n_neighbors >= n:
            raise InputError(
                f"n_neighbors={self.n_neighbors}, but each of the {n} sightings has {n - 1} "
                f"others; give at most {n - 1}"
            )
        D2 = kernel_distances(K)  # (N, N)
        # Position 0 of a sorted row is the sighting itself.
        scales = np.sqrt(np.partition(D2, self.n_neighbors, axis=1)[:, self.n_neighbors])
        graphs = fisher_graphs(
            persons, lambda members: _local_affinity(D2[np.ix_(members, members)], scales[members])
        )
        self.eigenvalues_, self.coef_ = shrunk_directions(K, graphs, self.reg, self.n_components)


def _local_affinity(D2: Floats, scales: Floats) -> Floats:
    """Return exp(-D2 / (s_i s_j)), 0 where a scale is 0."""
    products = np.outer(scales, scales)
    return np.exp(-np.divide(D2, products, out=np.full_like(D2, np.inf), where=products > 0))
