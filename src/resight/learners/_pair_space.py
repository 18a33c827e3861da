"""k-XQDA in the space of the pairs: coordinates in which both graphs of pairs are almost diagonal.

With psi = K theta, the pencil is L_D psi / n_D = mu W psi, W = L_S / n_S + lambda K^-p (p = 2 for
lambda I, 1 for lambda K). L_all is a diagonal and one indicator for each camera, so D - L_S, D its
diagonal, is block diagonal by person, and small dense problems give T with

    D - L_S = T^T T        L_S = T^T diag(s) T        L_D = T^T H H T

where H is the identity but for as many dimensions as there are cameras. In these coordinates, with
Q = T K^p T^T, F where s > 0 and E where s = 0, the inverse of W needs one N x N matrix only,
R = (Q_FF + lambda n_S / s)^-1:

    W^-1_FF = n_S/s - lambda n_S/s R n_S/s    W^-1_FE = n_S/s R Q_FE
    W^-1_EE = (Q_EE - Q_EF R Q_FE) / lambda

The eigenvalues mu are those of A = H W^-1 H / n_D, and the metric is (A - I)_+: an error of A
counts relative to the largest mu. So A is made in float64, but for what lies below its leading
vectors it is rounded and decomposed in float32, where the reduction to tridiagonal form, bound by
memory, takes half of the time. Applying W^-1 to the vectors in float64 gives their residuals, the
coefficients of the directions, and by Rayleigh-Ritz leading directions to full precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, lapack

from resight.learners._base import Codes, Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import gram

_STRIP = 256  # columns made at once in float64 before they are rounded
_SINGULAR = 1e-8
_INDEFINITE = 1e-5  # of a kernel's diagonal: eigenvalues as far below 0 are no round-off
_FAR = 0.7  # of an eigenvalue: a diagonal entry below it is far enough for a step of Jacobi's
_PERSONS = 64  # seen at once: bounds the copies of their rows


@dataclass(frozen=True)
class _Alike:
    """T of some persons with as many sightings, the rows of the null space of L_S first."""

    rows: Codes  # (k, n) among the sightings
    T: Floats  # (k, n, n)
    places: Codes  # (k, n) among the coordinates


class PairSpace:
    """The coordinates of the pairs, and a kernel matrix in them for all regularisers.

    Raises LinAlgError where D - L_S is not positive, as it may be for a handful of sightings.
    """

    def __init__(self, K: Floats, pairs: CrossCameraPairs) -> None:
        self.K, self.pairs = K, pairs
        self.alike, self.s = _by_person(pairs)
        self.n_null = len(K) - len(self.s)
        of_camera, joined = np.ones((len(K), 1)), np.array([[-1.0]])
        if pairs.cameras is not None:
            identity = np.eye(int(pairs.cameras.max()) + 1)
            of_camera, joined = identity[pairs.cameras], identity - 1.0
        image = np.empty_like(of_camera)  # L_D = D - L_S + of_camera joined of_camera^T
        for some in self.alike:
            image[some.places] = np.linalg.solve(some.T.transpose(0, 2, 1), of_camera[some.rows])
        Y, triangle = np.linalg.qr(image)
        self._h, U = np.linalg.eigh(np.eye(len(joined)) + triangle @ joined @ triangle.T)
        self.Y = Y @ U  # H H = I + Y diag(h - 1) Y^T
        self.inner = np.diag(np.sqrt(np.maximum(self._h, 0.0)) - 1.0)  # H = I + Y inner Y^T

    @cached_property
    def bound(self) -> int:
        """Most eigenvalues above 1 that the labels allow, whatever kernel and regulariser.

        There the difference of the two forms is positive, H H / n_D - diag(s) / n_S in these
        coordinates: a diagonal and a few dimensions, whose signs add up as Haynsworth says. It is
        c - 1 when all persons have the same number of sightings in each camera, more otherwise.
        """
        n_dissimilar = self.pairs.n_dissimilar
        d = 1.0 / n_dissimilar - np.append(np.zeros(self.n_null), self.s) / self.pairs.n_similar
        # Zeros, such as that of the constants, must come out negative although 1 / d is rounded.
        noise = 1e-7 * np.abs(d).max()
        d, q = d - noise, (self._h - 1.0) / n_dissimilar
        Y, q = self.Y[:, np.abs(q) > noise], q[np.abs(q) > noise]
        small = np.linalg.eigvalsh(-np.diag(1.0 / q) - Y.T @ (Y / d[:, None]))
        return int((d > 0.0).sum() + (small > 0.0).sum() - (q < 0.0).sum())

    @cached_property
    def mean_eigenvalue(self) -> float:
        """Return tr(Lambda_S) / N."""
        return float(self.s @ self.blocks(2)[2].diagonal()) / (self.pairs.n_similar * len(self.K))

    def times_h(self, M: Floats) -> Floats:
        """Return H M."""
        return np.asarray(M + self.Y @ (self.inner @ (self.Y.T @ M)))

    def enter(self, M: Floats) -> Floats:
        """Return T M, the rows in E first."""
        image = np.empty(M.shape)
        for some in self.alike:
            image[some.places] = some.T @ M[some.rows]
        return image

    def leave(self, M: Floats) -> Floats:
        """Return T^T M."""
        image = np.empty(M.shape)
        for some in self.alike:
            image[some.rows] = some.T.transpose(0, 2, 1) @ M[some.places]
        return image

    def blocks(self, power: int) -> tuple[Floats, Floats, Floats]:
        """Return Q_EE, Q_FE and Q_FF (lower triangle) for Q = T K^power T^T."""
        return self._kernel if power == 1 else self._squared

    def forget(self) -> None:
        """Give the memory of the blocks back."""
        for name in ("_kernel", "_squared"):
            self.__dict__.pop(name, None)

    @cached_property
    def _kernel(self) -> tuple[Floats, Floats, Floats]:
        Q, e = self.enter(np.ascontiguousarray(self.enter(self.K).T)), self.n_null
        return Q[:e, :e].copy(), Q[e:, :e].copy(), np.asfortranarray(Q[e:, e:])

    @cached_property
    def _squared(self) -> tuple[Floats, Floats, Floats]:
        image = self.enter(self.K)  # T K
        E, F = image[: self.n_null], image[self.n_null :]
        return E @ E.T, F @ E.T, gram(F)


class PairPencil:
    """A = H W^-1 H / n_D for one regulariser, as an operator and rounded to float32.

    `power` is p of the module's docstring. Unless `keep`, the space forgets its blocks. Raises
    LinAlgError where the regularised kernel is not positive.
    """

    def __init__(self, space: PairSpace, reg: float, power: int, *, keep: bool) -> None:
        self._Q_EE, self._Q_FE, FF = space.blocks(power)
        if keep:
            FF = FF.copy(order="F")
        else:
            space.forget()
        self.space, self.reg, self.power = space, reg, power
        self.D = reg * space.pairs.n_similar / space.s[:, None]  # (f, 1)
        self.stretch = self.D / reg  # n_S / s
        FF.flat[:: len(FF) + 1] += self.D[:, 0]
        self._factor, info = lapack.dpotrf(FF, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise LinAlgError("the regularised kernel is not positive definite")
        self._R: Floats | None = None

    @cached_property
    def _pulled(self) -> Floats:
        return self._times_inverse(self._Q_FE)  # R Q_FE, (f, e)

    @cached_property
    def _EE(self) -> Floats:  # noqa: N802
        schur = self._Q_EE - self._Q_FE.T @ self._pulled
        lift = _INDEFINITE * float(np.abs(self._Q_EE.diagonal()).max(initial=0.0))
        if lapack.dpotrf(schur + lift * np.eye(len(schur)))[1] != 0:
            raise LinAlgError("the kernel is not positive")
        return schur / self.reg  # W^-1_EE

    def _times_inverse(self, M: Floats) -> Floats:
        if self._R is None:
            return np.asarray(cho_solve((self._factor, True), M, check_finite=False))
        return np.asarray(self._R @ M)

    def _inverse(self, g: Floats) -> tuple[Floats, Floats]:
        """Return psi = W^-1 g and what the regulariser holds of g, lambda K^-p psi."""
        e = self.space.n_null
        psi, held = np.empty_like(g), np.empty_like(g)
        held[:e] = g[:e]
        held[e:] = self._times_inverse(self.D * g[e:]) - self._pulled @ g[:e]
        psi[:e] = self._EE @ g[:e] + self._pulled.T @ (self.stretch * g[e:])
        psi[e:] = self.stretch * (g[e:] - held[e:])
        return psi, held

    @property
    def diagonal(self) -> Floats:
        """That of A in F where R is known, the few dimensions of H - I apart; 0 elsewhere."""
        diagonal = np.zeros(len(self.space.K))
        if self._R is not None:
            kept = self.stretch[:, 0] * (1.0 - self.D[:, 0] * self._R.diagonal())
            diagonal[self.space.n_null :] = kept / self.space.pairs.n_dissimilar
        return diagonal

    def start(self) -> Floats:
        """Return columns near the vectors that stand out where lambda is small: E, and its images.

        With the eigenvectors of W^-1_EE, what belongs to them in F follows from the diagonal there.
        """
        scale = 1.0 / self.space.pairs.n_dissimilar
        mu, U = np.linalg.eigh(self._EE * scale)
        F = (self.stretch * scale * self._pulled) @ U / gaps_to(self.diagonal[len(mu) :], mu)
        return self.space.times_h(np.concatenate([U, F]))

    def apply(self, Y: Floats) -> tuple[Floats, Floats]:
        """Return A Y, and that from which `theta` makes the coefficients of these vectors."""
        scale = self.space.pairs.n_dissimilar**-0.5
        psi, held = self._inverse(self.space.times_h(Y) * scale)
        return self.space.times_h(psi) * scale, held

    def theta(self, held: Floats) -> Floats:
        """Return theta = K^-1 psi."""
        theta = self.space.leave(held) / self.reg
        return theta if self.power == 1 else np.asarray(self.space.K @ theta)

    def invert(self) -> Floats:
        """Make R, which takes the place of its factor; `apply` is twice as fast with it."""
        if self._R is None:
            _ = self._EE  # from the factor: errors of R here would be in A, and so in no residual
            R = np.asarray(lapack.dpotri(self._factor, lower=1, overwrite_c=1)[0])
            for start in range(0, len(R), _STRIP):  # whole: BLAS multiplies by a half slower
                strip, corner = R[start : start + _STRIP], slice(start, start + _STRIP)
                strip[:, corner] = np.tril(strip[:, corner]) + np.tril(strip[:, corner], -1).T
                strip[:, corner.stop :] = R[corner.stop :, corner].T
            self._R = R
        return self._R

    def beside(
        self, taken: Floats, image: Floats
    ) -> tuple[NDArray[np.float32], Callable[[NDArray[np.float32]], Floats]]:
        """Return A beside some eigenvectors, in float32 (lower triangle), and what leads back.

        A maps the orthonormal columns of `taken` (N, m) to `image`. With U the polar factor of
        their first m rows and V = `taken` with U added there, the reflection I - V G V^T maps them
        to these coordinates. Reflected on both sides A falls into two blocks; the second, of size
        N - m, is returned with a function from its vectors to those of A. What is large in W^-1
        but not in this block has gone before numbers are rounded.
        """
        m, e, Y = taken.shape[1], self.space.n_null, self.space.Y
        W_Y = self._inverse(Y)[0] @ self.space.inner / self.space.pairs.n_dissimilar
        side = W_Y + 0.5 * Y @ (self.space.inner @ (Y.T @ W_Y))
        left, right = np.hstack([side, Y]), np.hstack([Y, side])  # A = W^-1 / n_D + left right^T
        W_E = np.concatenate([self._EE, self.stretch * self._pulled])
        columns = W_E / self.space.pairs.n_dissimilar + left @ right[:e].T  # of A in E
        P, s, Q = np.linalg.svd(taken[:m])
        U, G, V = P @ Q, (Q.T / (1.0 + s)) @ Q, taken[m:]
        A_V = image + columns[:, :m] @ U
        within = taken.T @ A_V + U.T @ A_V[:m]  # V^T A V
        side = A_V[m:] @ G - 0.5 * V @ (G @ within @ G)
        left, right = np.hstack([left[m:], -side, -V]), np.hstack([right[m:], V, side])
        A = np.empty((len(V), len(V)), np.float32, order="F")
        A[:, : e - m] = columns[m:, m:] - side @ V[: e - m].T - V @ side[: e - m].T
        self._round(left[e - m :], right[e - m :], A[e - m :, e - m :])

        def lift(vectors: NDArray[np.float32]) -> Floats:
            lifted = np.empty((len(taken), vectors.shape[1]))
            own = lifted[m:]
            own[...] = vectors
            along = V.T @ own
            lifted[:m] = -U @ along
            own -= V @ (G @ along)
            return lifted

        return A, lift

    def _round(self, left: Floats, right: Floats, into: NDArray[np.float32]) -> None:
        """Put W^-1_FF / n_D + left right^T into the lower triangle."""
        R, n_dissimilar = self.invert(), self.space.pairs.n_dissimilar
        scale = self.stretch * np.sqrt(self.reg / n_dissimilar)
        for start in range(0, len(R), _STRIP):
            strip = slice(start, start + _STRIP)
            part = (right[strip] @ left[start:].T).T  # in Fortran order, as R is
            part -= R[start:, strip] * scale[start:] * scale[strip].T
            np.fill_diagonal(part, part.diagonal() + self.stretch[strip, 0] / n_dissimilar)
            into[start:, strip] = part


def gaps_to(diagonal: Floats, mu: Floats) -> Floats:
    """Return mu less the diagonal (rows), or mu itself where they are close: no gap is near 0."""
    smallest = max(np.finfo(np.float64).eps * mu.max(), np.finfo(np.float64).tiny)
    d, mu = diagonal[:, None], np.maximum(mu, smallest)
    return np.asarray(mu - np.where(d < _FAR * mu, d, 0.0))


def _by_person(pairs: CrossCameraPairs) -> tuple[list[_Alike], Floats]:
    """Return T of the persons, and s (f,)."""
    similar, persons = pairs.similar, pairs.persons
    diagonal = np.full(len(persons), float(len(persons)))
    if pairs.cameras is not None:
        diagonal = pairs.everything.degrees
    counts = np.bincount(persons)
    starts = np.cumsum(counts) - counts
    order = np.argsort(persons, kind="stable")
    paired = np.bincount(persons, similar.degrees) > 0.0
    # The null space of one person's Laplacian: constants, or all when seen by one camera only.
    nullities = np.where(paired, 1, counts)
    e, f = 0, int(nullities.sum())
    found, values = [], [np.zeros(0)]
    for n, k in sorted(set(zip(counts.tolist(), nullities.tolist(), strict=True))):
        alike = np.flatnonzero((counts == n) & (nullities == k))
        for some in np.split(alike, range(_PERSONS, len(alike), _PERSONS)):
            rows = order[starts[some][:, None] + np.arange(n)]
            apart = similar.parts[rows][:, :, None] != similar.parts[rows][:, None, :]
            laplacian = similar.degrees[rows][:, :, None] * np.eye(n) - apart
            C = np.linalg.cholesky(diagonal[rows][:, :, None] * np.eye(n) - laplacian)
            if (C.diagonal(0, 1, 2) ** 2 < _SINGULAR * diagonal[rows]).any():
                raise LinAlgError("D - L_S is singular, as where half of all sightings are alike")
            half = np.linalg.solve(C, laplacian).transpose(0, 2, 1)
            s, U = np.linalg.eigh(np.linalg.solve(C, half))
            places = np.empty(rows.shape, np.intp)
            places[:, :k] = e + np.arange(len(some) * k).reshape(-1, k)
            places[:, k:] = f + np.arange(len(some) * (n - k)).reshape(len(some), -1)
            found.append(_Alike(rows, (C @ U).transpose(0, 2, 1), places))
            values.append(s[:, k:].ravel())
            e, f = e + places[:, :k].size, f + places[:, k:].size
    return found, np.concatenate(values)
