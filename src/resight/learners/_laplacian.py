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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import block_diag

from resight.errors import InputError
from resight.learners._base import Codes, Floats


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
        in_groups, in_parts = _indicator(self.groups), _indicator(self.parts)
        # L ignores what is constant in a group: without it nothing large cancels.
        sizes = np.bincount(self.groups)[:, None]
        centred = M - in_groups @ (in_groups.T @ M / sizes)
        product: Floats = in_parts @ (in_parts.T @ centred) - in_groups @ (in_groups.T @ centred)
        centred *= self.degrees[:, None]
        product += centred
        return product

    def eigenbasis(self) -> tuple[sparse.csc_array, sparse.csc_array, Floats]:
        """Return (E, F, s): orthonormal bases of the null space and the range, L F = F diag(s).

        In a group of n with parts of n_v: contrasts inside part v have eigenvalue n - n_v,
        contrasts between parts have n, the constant vector has 0. Each is a Helmert contrast.
        """
        null, range_ = _Columns(), _Columns()
        values = [np.zeros(0)]
        for counts, members in self._alike().items():
            for positions, contrast, value in _contrasts(counts):
                (range_ if value else null).add(members[:, positions], contrast)
                values += [np.full(len(members), value)] if value else []
        shape = len(self.groups)
        return null.matrix(shape), range_.matrix(shape), np.concatenate(values)

    def _alike(self) -> dict[tuple[int, ...], Codes]:
        """Return the groups by the sizes of their parts: members (n_groups, n), part by part."""
        order = np.lexsort((self.parts, self.groups))
        sizes = np.bincount(self.parts).tolist()
        ends = np.cumsum(np.bincount(self.groups)).tolist()
        n_parts = np.bincount(self.groups[np.unique(self.parts, return_index=True)[1]]).tolist()
        alike: dict[tuple[int, ...], list[Codes]] = {}
        start = part = 0
        for end, count in zip(ends, n_parts, strict=True):
            alike.setdefault(tuple(sizes[part : part + count]), []).append(order[start:end])
            start, part = end, part + count
        return {counts: np.stack(members) for counts, members in alike.items()}


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

    def max_components(self) -> int:
        """Bound the number of eigenvalues above 1 by the labels alone.

        It is the number of positive eigenvalues of L_D / n_D - L_S / n_S, because mu > 1 exactly
        where the difference of the two forms is positive: c - 1 when all persons have the same
        number of sightings in each camera, more otherwise.
        """
        return sum(multiplicity for multiplicity, value in self._spectrum() if value > 0)

    def _spectrum(self) -> list[tuple[int, float]]:
        """Eigenvalues of L_D / n_D - L_S / n_S with multiplicities; round-off is set to 0.

        Contrasts inside one camera of a person and differences between persons with the same
        counts are eigenvectors in closed form; what remains is a small matrix over the distinct
        patterns of counts.
        """
        if self.cameras is None:
            return self._spectrum_of_all_pairs()
        counts = self._counts(self.cameras)  # (c, n_cameras)
        total = counts.sum(axis=0)  # (n_cameras,)
        patterns, repeats = np.unique(counts, axis=0, return_counts=True)
        joint = 1.0 / self.n_dissimilar + 1.0 / self.n_similar
        degrees = (total.sum() - total) / self.n_dissimilar  # of L_all / n_D, (n_cameras,)
        found: list[tuple[int, float]] = []
        blocks, ones, views = [], [], []
        for pattern, repeat in zip(patterns, repeats, strict=True):
            for view in np.flatnonzero(pattern > 1):
                value = degrees[view] - (pattern.sum() - pattern[view]) * joint
                found.append((int(repeat * (pattern[view] - 1)), value))
            seen = np.flatnonzero(pattern)
            roots = np.sqrt(pattern[seen])
            inside = pattern.sum() * np.eye(len(seen)) - np.outer(roots, roots)
            block = np.diag(degrees[seen]) - joint * inside
            found += [(int(repeat - 1), value) for value in np.linalg.eigvalsh(block)]
            blocks.append(block)
            ones.append(np.sqrt(repeat) * roots)
            views.append(seen)
        one, camera = np.concatenate(ones), np.concatenate(views)
        joined = np.outer(one, one) * (camera[:, None] != camera[None, :]) / self.n_dissimilar
        shared = block_diag(*blocks) - joined
        found += [(1, value) for value in np.linalg.eigvalsh(shared)]
        noise = 1e-9 * max(abs(value) for _, value in found)
        return [(times, value if abs(value) > noise else 0.0) for times, value in found]

    def _spectrum_of_all_pairs(self) -> list[tuple[int, float]]:
        # L_all = N I - 1 1^T, and L_S = n_k I - 1_k 1_k^T for each person k.
        sizes = np.bincount(self.persons)
        base = len(self.persons) / self.n_dissimilar
        joint = 1.0 / self.n_dissimilar + 1.0 / self.n_similar
        contrasts = [(int(size - 1), float(base - size * joint)) for size in sizes]
        noise = 1e-9 * base
        return [(len(sizes) - 1, base)] + [
            (times, value if abs(value) > noise else 0.0) for times, value in contrasts
        ]

    def _counts(self, cameras: Codes) -> NDArray[np.intp]:
        """Sightings of each person in each camera, (c, n_cameras)."""
        n_persons, n_cameras = int(self.persons.max()) + 1, int(cameras.max()) + 1
        cells = self.persons * n_cameras + cameras
        return np.bincount(cells, minlength=n_persons * n_cameras).reshape(n_persons, n_cameras)


def _indicator(codes: Codes) -> sparse.csr_array:
    n = len(codes)
    return sparse.csr_array((np.ones(n), codes, np.arange(n + 1)))


def _parts(groups: Codes, views: Codes) -> Codes:
    pairs = groups * (int(views.max(initial=0)) + 1) + views
    codes: Codes = np.unique(pairs, return_inverse=True)[1]
    return codes


def _contrasts(counts: tuple[int, ...]) -> Iterator[tuple[slice, Floats, float]]:
    """Yield the eigenvectors of a group with parts of these sizes: where, entries, eigenvalue."""
    n = sum(counts)
    yield slice(n), np.full(n, n**-0.5), 0.0
    start = 0
    for i, count in enumerate(counts):
        for size in range(1, count):
            yield slice(start, start + size + 1), _helmert(size, 1), float(n - count)
        if i:
            yield slice(start + count), _helmert(start, count), float(n)
        start += count


def _helmert(n: int, size: int) -> Floats:
    """Return the unit contrast of the mean of `n` rows against that of the `size` next ones."""
    contrast = np.concatenate([np.full(n, size), np.full(size, -n)]).astype(np.float64)
    return contrast / np.linalg.norm(contrast)


class _Columns:
    """Collects sparse columns."""

    def __init__(self) -> None:
        self.rows: list[Codes] = []
        self.values: list[Floats] = []
        self.lengths: list[int] = []

    def add(self, rows: Codes, values: Floats) -> None:
        """Add one column for each row of `rows` (n_columns, n), all with the same values (n,)."""
        self.rows.append(rows.ravel())
        self.values.append(np.tile(values, len(rows)))
        self.lengths += [rows.shape[1]] * len(rows)

    def matrix(self, n_rows: int) -> sparse.csc_array:
        if not self.rows:
            return sparse.csc_array((n_rows, 0))
        ends = np.cumsum([0, *self.lengths])
        parts = (np.concatenate(self.values), np.concatenate(self.rows), ends)
        return sparse.csc_array(parts, shape=(n_rows, len(self.lengths)))
