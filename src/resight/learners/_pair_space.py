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

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, lapack
from scipy.linalg.blas import dsymm

from resight.learners._base import Codes, Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import gram

_STRIP = 256  # columns made at once in float64 before they are rounded


@dataclass(frozen=True)
class _Person:
    """T of one person, the rows of the null space of L_S first."""

    rows: Codes  # (n,) among the sightings
    T: Floats  # (n, n)
    places: Codes  # (n,) among the coordinates


class PairSpace:
    """The coordinates of the pairs, and a kernel matrix in them for all regularisers.

    Raises LinAlgError where D - L_S is not positive, as it may be for a handful of sightings.
    """

    def __init__(self, K: Floats, pairs: CrossCameraPairs) -> None:
        self.K, self.pairs = K, pairs
        self.persons, self.s = _by_person(pairs)
        self.n_null = len(K) - len(self.s)
        self.Y, self.inner = self._of_cameras()

    def _of_cameras(self) -> tuple[Floats, Floats]:
        """Return Y (N, n_cameras) and M with H = I + Y M Y^T."""
        of_camera, joined = np.ones((len(self.K), 1)), np.array([[-1.0]])
        if self.pairs.cameras is not None:
            identity = np.eye(int(self.pairs.cameras.max()) + 1)
            of_camera, joined = identity[self.pairs.cameras], identity - 1.0
        image = np.empty_like(of_camera)  # L_D = D - L_S + of_camera joined of_camera^T
        for person in self.persons:
            image[person.places] = np.linalg.solve(person.T.T, of_camera[person.rows])
        Y, triangle = np.linalg.qr(image)
        h, U = np.linalg.eigh(np.eye(len(joined)) + triangle @ joined @ triangle.T)
        return Y, (U * (np.sqrt(np.maximum(h, 0.0)) - 1.0)) @ U.T

    def times_h(self, M: Floats) -> Floats:
        """Return H M."""
        return np.asarray(M + self.Y @ (self.inner @ (self.Y.T @ M)))

    def enter(self, M: Floats) -> Floats:
        """Return T M, the rows in E first."""
        image = np.empty(M.shape)
        for person in self.persons:
            image[person.places] = person.T @ M[person.rows]
        return image

    def leave(self, M: Floats) -> Floats:
        """Return T^T M."""
        image = np.empty(M.shape)
        for person in self.persons:
            image[person.rows] = person.T.T @ M[person.places]
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
        EE, self._FE, FF = space.blocks(power)
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
        self._pulled = self._times_inverse(self._FE)  # R Q_FE, (f, e)
        self._EE = (EE - self._FE.T @ self._pulled) / reg  # W^-1_EE

    def _times_inverse(self, M: Floats) -> Floats:
        if self._R is None:
            return np.asarray(cho_solve((self._factor, True), M, check_finite=False))
        return np.asarray(dsymm(1.0, self._R, np.asfortranarray(M), lower=1))

    def _inverse(self, g: Floats) -> tuple[Floats, Floats]:
        """Return psi = W^-1 g and what the regulariser holds of g, lambda K^-p psi."""
        e = self.space.n_null
        psi, held = np.empty_like(g), np.empty_like(g)
        held[:e] = g[:e]
        held[e:] = self._times_inverse(self.D * g[e:]) - self._pulled @ g[:e]
        psi[:e] = self._EE @ g[:e] + self._pulled.T @ (self.stretch * g[e:])
        psi[e:] = self.stretch * (g[e:] - held[e:])
        return psi, held

    def apply(self, Y: Floats) -> tuple[Floats, Floats]:
        """Return A Y, and that from which `theta` makes the coefficients of these vectors."""
        scale = self.space.pairs.n_dissimilar**-0.5
        psi, held = self._inverse(self.space.times_h(Y) * scale)
        return self.space.times_h(psi) * scale, held

    def theta(self, held: Floats) -> Floats:
        """Return theta = K^-1 psi."""
        theta = self.space.leave(held) / self.reg
        return theta if self.power == 1 else np.asarray(self.space.K @ theta)

    def rounded(self, taken: Floats, image: Floats) -> NDArray[np.float32]:
        """Return (I - P) A (I - P) in float32, lower triangle, P the projection on `taken`.

        The columns of `taken` (N, m) are orthonormal, and A maps them to `image`. What is large in
        W^-1 but not in A has gone before numbers are rounded. R takes the place of its factor.
        """
        self._R, _ = lapack.dpotri(self._factor, lower=1, overwrite_c=1)
        n_dissimilar, e, Y = self.space.pairs.n_dissimilar, self.space.n_null, self.space.Y
        W_Y = self._inverse(Y)[0] @ self.space.inner / n_dissimilar
        side = W_Y + 0.5 * Y @ (self.space.inner @ (Y.T @ W_Y))
        off = 0.5 * taken @ (taken.T @ image) - image
        left, right = np.hstack([side, Y, off, taken]), np.hstack([Y, side, taken, off])
        n = len(Y)
        A = np.zeros((n, n), np.float32, order="F")
        corner = np.concatenate([self._EE, self.stretch * self._pulled]) / n_dissimilar
        A[:, :e] = corner + left @ right[:e].T
        scale = self.stretch * np.sqrt(self.reg / n_dissimilar)
        for start in range(0, n - e, _STRIP):
            strip = slice(start, start + _STRIP)
            part = -scale[start:] * self._R[start:, strip] * scale[strip].T
            np.fill_diagonal(part, part.diagonal() + self.stretch[strip, 0] / n_dissimilar)
            part += left[e + start :] @ right[e:][strip].T
            A[e + start :, e:][:, strip] = part
        return A


def _by_person(pairs: CrossCameraPairs) -> tuple[list[_Person], Floats]:
    """Return T of each person, and s (f,)."""
    similar, n = pairs.similar, len(pairs.persons)
    diagonal = np.full(n, float(n)) if pairs.cameras is None else pairs.everything.degrees
    order = np.argsort(pairs.persons, kind="stable")
    cuts = np.cumsum(np.bincount(pairs.persons))[:-1]
    found, values = [], []
    e = f = 0
    n_null = sum(_nullity(similar.degrees[rows]) for rows in np.split(order, cuts))
    for rows in np.split(order, cuts):
        apart = similar.parts[rows][:, None] != similar.parts[rows]
        laplacian = np.diag(similar.degrees[rows]) - apart
        C = np.linalg.cholesky(np.diag(diagonal[rows]) - laplacian)
        half = np.linalg.solve(C, laplacian)
        s, U = np.linalg.eigh(np.linalg.solve(C, half.T))
        k = _nullity(similar.degrees[rows])
        places = np.r_[e : e + k, n_null + f : n_null + f + len(rows) - k]
        found.append(_Person(rows, U.T @ C.T, places))
        values.append(s[k:])
        e, f = e + k, f + len(rows) - k
    return found, np.concatenate(values)


def _nullity(degrees: Floats) -> int:
    """Dimension of the null space of one person's Laplacian: all when seen by one camera only."""
    return 1 if degrees.any() else len(degrees)
