"""k-XQDA between features from sums alone, which add up over chunks, workers and people.

With f_i features, t_kv the sum over person k in camera v, t_k over all cameras and w_i the number
of similar pairs of sighting i, the Laplacians of `_laplacian` give

    n_S Sigma_S = sum_i w_i f_i f_i^T - sum_k t_k t_k^T + sum_kv t_kv t_kv^T
    n_S Sigma_S + n_D Sigma_D = sum_v (N - n_v) M_v - T T^T + sum_v t_v t_v^T

with M_v the second moment of camera v, t_v its sum, n_v its count. The first line is a sum over
people and needs all sightings of a person (w_i counts them); the second one of camera totals.
Without cameras every sighting is its own: the last term of each line joins the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh

from resight.errors import InputError
from resight.learners._base import Codes, Floats
from resight.learners._laplacian import Multipartite
from resight.learners._solvers import leading_pencil
from resight.saving import SavableMixin

CHUNK_ROWS = 2048  # seen at once: kernel rows of 50 MB for 1,024 features of 3,072 landmarks
NO_CAMERA = 0  # code that stands for all sightings when cameras are not given


@dataclass(frozen=True)
class ChunkSums:
    """Sums over some rows; a person's rows may lie in several chunks."""

    weighted: Floats  # (q, q): sum_i w_i f_i f_i^T
    cells: Codes  # (m, 2): person and camera of each cell, sorted
    counts: Codes  # (m,): sightings in each cell
    sums: Floats  # (m, q): t_kv
    moments: Floats  # (c, q, q): M_v of the cameras that occur

    @classmethod
    def of_rows(
        cls, F: Floats, persons: Codes, cameras: Codes | None, weights: Floats
    ) -> ChunkSums:
        """Add up rows: features (n, q), codes and the weights of `pair_weights`."""
        views = np.full(len(F), NO_CAMERA) if cameras is None else cameras
        cells, of_cell, counts = np.unique(
            np.column_stack([persons, views]), axis=0, return_inverse=True, return_counts=True
        )
        order = np.argsort(of_cell.ravel(), kind="stable")
        sums = np.add.reduceat(F[order], np.cumsum(counts) - counts, axis=0)
        moments = np.stack([_moment(F[views == view]) for view in np.unique(views)])
        paired = weights > 0
        weighted = _moment(F[paired] * np.sqrt(weights[paired])[:, None])
        return cls(weighted, cells, counts, sums, moments)

    @property
    def cameras(self) -> Codes:
        """Codes of the cameras that occur, (c,)."""
        return np.unique(self.cells[:, 1])

    def __add__(self, other: ChunkSums) -> ChunkSums:
        cells, counts, sums = _added("cells", ("counts", "sums"), self, other)
        _, moments = _added("cameras", ("moments",), self, other)
        return ChunkSums(self.weighted + other.weighted, cells, counts, sums, moments)

    def finish(self, cameras: NDArray[Any] | None) -> LandmarkStatistics:
        """Fold the people in, once all of their rows were added up.

        `cameras` are the labels of the camera codes; None when every sighting is its own camera.
        """
        _, starts = np.unique(self.cells[:, 0], return_index=True)  # cells are sorted by person
        of_person = np.add.reduceat(self.sums, starts, axis=0)  # t_k
        similar = self.weighted - _moment(of_person)
        n_person = np.add.reduceat(self.counts, starts)
        within = n_person if cameras is None else self.counts**2
        if cameras is not None:
            similar += _moment(self.sums)
        n_similar = (int((n_person**2).sum()) - int(within.sum())) // 2
        of_view = [self.cells[:, 1] == view for view in self.cameras]
        return LandmarkStatistics(
            similar,
            n_similar,
            None if cameras is None else cameras[self.cameras],
            np.array([self.counts[cells].sum() for cells in of_view]),
            np.stack([self.sums[cells].sum(axis=0) for cells in of_view]),
            self.moments,
        )


@dataclass(frozen=True)
class LandmarkStatistics(SavableMixin):
    """Everything the pencil of k-XQDA needs; those of different people add up."""

    state_version: ClassVar[int] = 1

    similar: Floats  # (q, q): n_S Sigma_S
    n_similar: int  # n_S
    cameras: NDArray[Any] | None  # (c,) labels; None: every sighting is its own camera, c is 1
    counts: Codes  # (c,): n_v
    sums: Floats  # (c, q): t_v
    moments: Floats  # (c, q, q): M_v

    def __add__(self, other: LandmarkStatistics) -> LandmarkStatistics:
        similar, n_similar = self.similar + other.similar, self.n_similar + other.n_similar
        cameras, *sums = _added("cameras", ("counts", "sums", "moments"), self, other)
        return LandmarkStatistics(similar, n_similar, cameras, *sums)

    @property
    def n_sightings(self) -> int:
        """N."""
        return int(self.counts.sum())

    @property
    def n_dissimilar(self) -> int:
        """n_D: all pairs across cameras less the similar ones."""
        n = self.n_sightings
        inside = n if self.cameras is None else int((self.counts.astype(object) ** 2).sum())
        return (n * n - inside) // 2 - self.n_similar

    def covariances(self) -> tuple[Floats, Floats]:
        """Return Sigma_S and Sigma_D, (q, q), in Fortran order."""
        degrees = float(self.n_sightings) - (0 if self.cameras is None else self.counts)
        everything = np.tensordot(np.broadcast_to(degrees, len(self.counts)), self.moments, 1)
        everything -= np.outer(self.sums.sum(axis=0), self.sums.sum(axis=0))
        if self.cameras is not None:
            everything += _moment(self.sums)
        dissimilar = (everything - self.similar) / self.n_dissimilar
        return np.asfortranarray(self.similar / self.n_similar), np.asfortranarray(dissimilar)

    def second_moment(self, centre: Floats) -> Floats:
        """Return G^T G of the features before `centre` was taken off, (q, q)."""
        total = self.sums.sum(axis=0)
        moment: Floats = self.moments.sum(axis=0) + np.outer(total, centre)
        moment += np.outer(centre, total + self.n_sightings * centre)
        return moment

    def mean(self) -> Floats:
        """Mean of the features, (q,)."""
        return self.sums.sum(axis=0) / self.n_sightings


class LandmarkPencil:
    """Sigma_D v = mu (Sigma_S + regulariser) v; regularisers share its matrices.

    `centre` (q,) was taken off the features.
    With features as rows of G and K replaced by G G^T, a direction theta of k-XQDA acts on
    features as v = G^T theta. Its penalty lambda theta^T theta is lambda v^T (G^T G)^-1 v, and
    lambda theta^T K theta is lambda v^T v. The inverse is never formed: with G^T G = R R^T and
    v = R u the first penalty is lambda u^T u. When all training sightings are landmarks this is
    k-XQDA itself.
    """

    def __init__(self, statistics: LandmarkStatistics, centre: Floats) -> None:
        self.statistics = statistics
        self._similar, self._dissimilar = statistics.covariances()
        self._moment = statistics.second_moment(centre)

    def solve(self, reg: float, reg_form: str) -> tuple[Floats, Floats]:
        """Return the eigenvalues above 1 (at least one), largest first, and directions (q, b)."""
        if reg_form == "kernel":
            mu, V = _leading(self._similar, self._dissimilar, reg, reg_form)
        else:
            R, similar, dissimilar = self._turned
            absolute = reg
            if reg_form == "relative":  # tr(Lambda_S) / N, and Lambda_S has the trace of R^T S R
                absolute *= float(np.trace(similar)) / self.statistics.n_sightings
            mu, U = _leading(similar, dissimilar, absolute, reg_form)
            V = R @ U
        kept = max(1, int((mu > 1.0).sum()))
        return mu[:kept], V[:, :kept]

    @cached_property
    def _turned(self) -> tuple[Floats, Floats, Floats]:
        """R, R^T Sigma_S R and R^T Sigma_D R."""
        s, U = eigh(self._moment, check_finite=False, driver="evd")
        R = U * np.sqrt(np.maximum(s, 0.0))
        return R, _between(R, self._similar), _between(R, self._dissimilar)


def _between(R: Floats, M: Floats) -> Floats:
    turned: Floats = R.T @ M @ R
    return np.asfortranarray((turned + turned.T) / 2)


def total(parts: Iterable[Any]) -> Any:
    """Add up chunks or statistics, in the order given."""
    return reduce(lambda a, b: a + b, parts)


def add_up(
    features: Callable[[slice], Floats],
    persons: Codes,
    cameras: Codes | None,
    weights: Floats,
    at_once: int | None = None,
) -> ChunkSums:
    """Sum up the features of rows, some rows at a time; weights are those of `pair_weights`."""
    step = at_once or CHUNK_ROWS

    def chunk(start: int) -> ChunkSums:
        part = slice(start, start + step)
        views = None if cameras is None else cameras[part]
        return ChunkSums.of_rows(features(part), persons[part], views, weights[part])

    return total(chunk(start) for start in range(0, len(persons), step))


def pair_weights(persons: Codes, cameras: Codes | None) -> Floats:
    """Return w_i for every row: its similar pairs, plus one when it is its own camera, (N,).

    All sightings of each person must be among the rows.
    """
    if cameras is None:
        return np.bincount(persons)[persons].astype(np.float64)
    cells: Codes = np.unique(persons * (int(cameras.max()) + 1) + cameras, return_inverse=True)[1]
    return Multipartite(persons, cells).degrees


def _moment(F: Floats) -> Floats:
    return F.T @ F  # NumPy takes the symmetric rank-k update


def _added(key: str, names: Sequence[str], *parts: Any) -> list[Any]:
    """Return the distinct keys of two parts, sorted, and for each name the sums of rows by key.

    No key occurs twice in a part. A key that is None stands for one row.
    """
    keys = [getattr(part, key) for part in parts]
    distinct, into = None, np.zeros(2, np.intp)
    if all(one is not None for one in keys):
        axis = 0 if keys[0].ndim > 1 else None
        distinct, into = np.unique(np.concatenate(keys), axis=axis, return_inverse=True)
    added: list[Any] = [distinct]
    for name in names:
        own = [getattr(part, name) for part in parts]
        sums = np.zeros((into.max() + 1, *own[0].shape[1:]), dtype=own[0].dtype)
        for rows, values in zip(np.split(into.ravel(), [len(own[0])]), own, strict=True):
            sums[rows] += values
        added.append(sums)
    return added


def _leading(
    similar: Floats, dissimilar: Floats, ridge: float, reg_form: str
) -> tuple[Floats, Floats]:
    A, B = dissimilar.copy(order="F"), similar.copy(order="F")
    B.flat[:: len(B) + 1] += ridge
    try:
        return leading_pencil(A, B, len(B), above=1.0)
    except LinAlgError:
        raise InputError(
            f"the regulariser ({ridge:.3g}, reg_form={reg_form!r}) is too small for the scale of "
            f"this kernel: the matrix of similar pairs (trace {np.trace(similar):.3g}) is "
            "numerically singular. Use reg_form='relative' with reg between 1e-6 and 1e-1, a "
            "larger reg, or fewer landmarks"
        ) from None
