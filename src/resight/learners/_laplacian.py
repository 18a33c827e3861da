"""The graph of cross-camera pairs and its Laplacians, never listing a pair.

With e the standard basis, the sum of (e_i - e_j)(e_i - e_j)^T over a set of pairs is the
Laplacian of the graph whose edges are these pairs, so for any features
sum (x_i - x_j)(x_i - x_j)^T = X^T L X. The pairs across cameras form complete multipartite
graphs, whose Laplacians are a diagonal minus a few indicators:

    L_all = diag(N - n_camera(i)) - 1 1^T + sum_v e_v e_v^T              (all pairs)
    L_S   = the same within each person                                   (similar pairs)
    L_D   = L_all - L_S                                                   (dissimilar pairs)

Theorems 1 and 2 of the paper (its A, B, C and U, V, E blocks) are n_S Lambda_S = K L_S K and
n_D Lambda_D = K L_D K for two cameras; this form holds for any number of cameras and counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from resight.errors import InputError
from resight.learners._base import Codes, Floats, squared_euclidean
from resight.learners._solvers import gram


@dataclass(frozen=True)
class Multipartite:
    """Laplacian of disjoint complete multipartite graphs: vertices in groups, groups in parts.

    Two vertices are joined when they share a group but not a part.
    """

    groups: Codes  # (N,) person, or 0 for all
    parts: Codes  # (N,) codes of (group, camera)

    @cached_property
    def degrees(self) -> Floats:
        """Number of pairs of each vertex, (N,)."""
        sizes = np.bincount(self.groups)[self.groups]
        return (sizes - np.bincount(self.parts)[self.parts]).astype(np.float64)

    @property
    def n_pairs(self) -> int:
        """Number of edges."""
        return round(self.degrees.sum() / 2)

    def apply(self, M: Floats) -> Floats:
        """Return L M in O(size of M), for M of shape (N, k)."""
        (groups, to_groups), (parts, to_parts) = self._in_groups, self._in_parts
        centred = self._centred(M)
        product: Floats = parts @ (to_parts @ centred) - groups @ (to_groups @ centred)
        centred *= self.degrees[:, None]
        product += centred
        return product

    def form(self, M: Floats) -> Floats:
        """Return M^T L M (lower triangle, Fortran order) by symmetric updates alone."""
        centred = self._centred(M)  # the term of the groups vanishes
        sizes = np.bincount(self.parts)
        alone = sizes[self.parts] == 1  # whose sum is the row itself
        sums = (self._in_parts[1] @ centred)[sizes > 1]
        centred *= np.sqrt(self.degrees + alone)[:, None]
        own = gram(centred.T)
        return gram(sums.T, into=own) if len(sums) else own

    def _centred(self, M: Floats) -> Floats:
        """Subtract the mean of each group, which L ignores: nothing large cancels without it."""
        groups, to_groups = self._in_groups
        return M - groups @ (to_groups @ M / np.bincount(self.groups)[:, None])

    @cached_property
    def _in_groups(self) -> tuple[sparse.csr_array, sparse.csc_array]:
        return _indicator(self.groups)

    @cached_property
    def _in_parts(self) -> tuple[sparse.csr_array, sparse.csc_array]:
        return _indicator(self.parts)


@dataclass(frozen=True)
class CrossCameraPairs:
    """All pairs of sightings from different cameras, split into similar and dissimilar."""

    persons: Codes  # (N,): 0, 1, 2, ...
    cameras: Codes | None  # (N,); None: every sighting is its own camera, all pairs count

    def __post_init__(self) -> None:
        if self.cameras is not None and self.cameras.max(initial=0) == 0:
            raise InputError(
                "all sightings come from one camera, so no pair spans two cameras. Give "
                "sightings of at least two cameras, or cameras=None to use all pairs"
            )
        if self.n_similar == 0:
            raise InputError(
                "no person is seen by two cameras, so there are no similar pairs to learn from. "
                "Label at least one person in two cameras, or give cameras=None to use all pairs"
            )
        if self.n_dissimilar == 0:
            raise InputError(
                f"there is no dissimilar pair: {self.persons.max() + 1} person(s) given. Learning "
                "needs at least two persons (classes) in different cameras"
            )

    @cached_property
    def similar(self) -> Multipartite:
        """Graph of the pairs of one person across cameras."""
        return Multipartite(self.persons, _parts(self.persons, self._views))

    @cached_property
    def everything(self) -> Multipartite:
        """Graph of all pairs across cameras."""
        return Multipartite(np.zeros_like(self.persons), self._views)

    @property
    def n_similar(self) -> int:
        """n_S of the paper."""
        return self.similar.n_pairs

    @property
    def n_dissimilar(self) -> int:
        """n_D of the paper."""
        return self.everything.n_pairs - self.similar.n_pairs

    @property
    def n_independent(self) -> int:
        """Largest number of independent differences x_i - x_j among the similar pairs."""
        paired = self.persons[self.similar.degrees > 0]
        return len(paired) - len(np.unique(paired))

    @property
    def _views(self) -> Codes:
        if self.cameras is None:
            return np.arange(len(self.persons))
        return self.cameras

    def mean_similar(self, M: Floats) -> Floats:
        """Return L_S M / n_S."""
        return self.similar.apply(M) / self.n_similar

    def mean_dissimilar(self, M: Floats) -> Floats:
        """Return L_D M / n_D."""
        difference = self.everything.apply(M)
        difference -= self.similar.apply(M)
        difference /= self.n_dissimilar
        return difference

    def covariances(self, M: Floats) -> tuple[Floats, Floats]:
        """Return M^T L_S M / n_S and M^T L_D M / n_D, lower triangles in Fortran order.

        With features as rows of M these are Sigma_S and Sigma_D of XQDA; with the kernel matrix as
        M they are Lambda_S and Lambda_D of k-XQDA (Theorems 1 and 2).
        """
        similar, dissimilar = self.similar.form(M), self.everything.form(M)
        dissimilar -= similar
        dissimilar /= self.n_dissimilar
        similar /= self.n_similar
        return similar, dissimilar


class AllPairs:
    """All cross-camera pairs: each camera against all earlier cameras.

    Without cameras all pairs count; they are one block of all rows against all rows in which each
    pair appears twice, half each time. Data without a similar or dissimilar pair are refused.
    """

    def __init__(self, persons: Codes, cameras: Codes | None) -> None:
        CrossCameraPairs(persons, cameras)  # its checks
        rows = np.arange(len(persons))
        self.blocks = [(rows, rows)]  # rows of the data matrix on either side
        if cameras is not None:
            later = range(1, int(cameras.max()) + 1)
            self.blocks = [(rows[cameras < one], rows[cameras == one]) for one in later]
        sizes = [len(first) * len(second) for first, second in self.blocks]
        self._slices = [slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]).tolist())]
        same = [persons[first][:, None] == persons[second] for first, second in self.blocks]
        self.similar = np.concatenate([block.ravel() for block in same])  # (n_pairs,)
        self.times = np.ones(len(self.similar))  # how often a pair counts
        if cameras is None:
            self.times = np.where(rows[:, None] == rows, 0.0, 0.5).ravel()

    def distances(self, E: Floats) -> Floats:
        """Squared Euclidean distances of the pairs for embeddings E, (n_pairs,)."""
        found = [squared_euclidean(E[first], E[second]).ravel() for first, second in self.blocks]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def mean_distance(self, Z: Floats) -> float:
        """Mean squared distance of the pairs."""
        return float((self.times * self.distances(Z)).sum() / self.times.sum())

    def laplacian_times(self, weights: Floats, E: Floats) -> Floats:
        """Return L E, L the Laplacian of the pairs with these weights (n_pairs,).

        The sum over pairs of w_ij (x_i - x_j)(x_i - x_j)^T is then X^T L X.
        """
        product = np.zeros_like(E)
        for (first, second), part in zip(self.blocks, self._slices, strict=True):
            W, left, right = weights[part].reshape(len(first), -1), E[first], E[second]
            product[first] += W.sum(axis=1)[:, None] * left - W @ right
            product[second] += W.sum(axis=0)[:, None] * right - W.T @ left
        return product


def _indicator(codes: Codes) -> tuple[sparse.csr_array, sparse.csc_array]:
    """Return the matrix (N, groups) of who is in which group, and its transpose."""
    n = len(codes)
    inside = sparse.csr_array((np.ones(n), codes, np.arange(n + 1)))
    return inside, inside.T


def _parts(groups: Codes, views: Codes) -> Codes:
    return np.unique(groups * (int(views.max(initial=0)) + 1) + views, return_inverse=True)[1]
