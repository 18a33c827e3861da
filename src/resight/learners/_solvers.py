"""Leading eigenvectors of a symmetric pencil, with LAPACK's steps taken one by one.

scipy.linalg.eigh on a pencil either computes all eigenvectors or finds the wanted ones by
bisection and inverse iteration. Here only the wanted ones are computed, by the MRRR routine, and
transformed back: about a third of the work when a quarter of them is wanted.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack, solve_triangular
from scipy.linalg.blas import dsyrk

from resight.learners._band import leading_by_band, reflect
from resight.learners._base import Floats

_SMALL = 1024  # rows up to which LAPACK applies reflections faster than `reflect`
_BAND_FROM = 4000  # rows of float32: below, the band gains little


def leading_pencil(
    A: Floats, B: Floats, most: int, above: float = -np.inf
) -> tuple[Floats, Floats]:
    """Solve A v = mu B v for the largest mu; return them, largest first, and V with V^T B V = I.

    Both matrices (N, N), in Fortran order, are overwritten; their lower triangles count. Raises
    LinAlgError if B is not positive definite to working precision.
    """
    L, info = lapack.dpotrf(B, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        raise LinAlgError("the regularised within matrix is not positive definite")
    C, _ = lapack.dsygst(A, L, itype=1, lower=1, overwrite_a=1)  # L^-1 A L^-T
    mu, V = leading_eigenpairs(C, most, above)
    return mu, solve_triangular(L, V, lower=True, trans="T", overwrite_b=True, check_finite=False)


def leading_eigenpairs(
    C: NDArray[Any], most: int, above: float = -np.inf
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest eigenvalues, first first, and their vectors.

    At most so many, and of those not above the limit at most the first. C, float32 or float64, is
    overwritten; its lower triangle counts. Householder reduction to tridiagonal form, or to a band
    where that is faster, the wanted vectors of it, back-transformation.
    """
    if C.dtype == np.float32 and len(C) >= _BAND_FROM:
        return leading_by_band(C, most, above)
    tridiagonal = _Tridiagonal(C)
    return tridiagonal.leading(min(most, max(1, tridiagonal.count_above(above))))


class _Tridiagonal:
    """A symmetric matrix (lower triangle, Fortran order, overwritten) reduced by reflections."""

    def __init__(self, C: NDArray[Any]) -> None:
        found: Any = lapack.get_lapack_funcs(("sytrd", "sytrd_lwork", "ormqr", "stev"), (C,))
        sytrd, lwork, self._ormqr, slower = found
        # Divide and conquer; SciPy for Python 3.10 offers the slower QR iteration only.
        self._stevd = getattr(lapack, f"{slower.typecode}stevd", slower)
        work = int(lwork(len(C), lower=1)[0])
        self._reflectors, self.d, self.e, self._tau, _ = sytrd(
            C, lower=1, lwork=work, overwrite_a=1
        )

    def count_above(self, limit: float) -> int:
        """Count the eigenvalues above a limit: the positive pivots of T - limit (Sylvester)."""
        if limit == -np.inf:
            return len(self.d)
        count, pivot = 0, 1.0
        squares = np.append(0.0, self.e.astype(np.float64) ** 2)
        for entry, square in zip((self.d - limit).tolist(), squares.tolist(), strict=True):
            pivot = entry - square / pivot or float(np.finfo(np.float64).tiny)
            count += pivot > 0.0
        return count

    def leading(self, n_leading: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest eigenvalues, first first, and vectors of the matrix."""
        mu, V = self._leading_of_tridiagonal(n_leading)
        V = np.array(V[:, ::-1], dtype=self.d.dtype, order="C")
        # With lower=1 the reflectors act on rows 1..n-1 as those of a QR factorisation do.
        if 1 < len(V) <= _SMALL:
            tail, own = (np.asfortranarray(M) for M in (self._reflectors[1:, :-1], V[1:]))
            room = int(self._ormqr("L", "N", tail, self._tau, own, -1)[1][0])
            V[1:] = self._ormqr("L", "N", tail, self._tau, own, room)[0]
            return mu[::-1].copy(), V
        # LAPACK's blocks are narrow, and take twice as long where they are many.
        reflect(V, self._reflectors, self._tau, 1)
        return mu[::-1].copy(), V

    def _leading_of_tridiagonal(self, n_leading: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest eigenvalues, last first, and vectors of the tridiagonal matrix."""
        n = len(self.d)
        if n == 1:
            return self.d, np.ones((1, 1))
        if 0 < 3 * n_leading <= n:  # MRRR for the wanted ones, in float64 always: it costs little
            padded = np.append(self.e, 0.0)  # dstemr wants room for n off-diagonal values
            wanted = (self.d, padded, 2, 0.0, 1.0, n - n_leading + 1, n)
            lwork, liwork, _ = lapack.dstemr_lwork(*wanted, compute_v=1)
            found, mu, V, info = lapack.dstemr(
                *wanted, compute_v=1, lwork=int(lwork), liwork=liwork
            )
            if info == 0 and found == n_leading:
                return mu[:n_leading], V[:, :n_leading]
        # Most are wanted, or tight clusters below eigenvalues ten orders larger defeated MRRR:
        # divide and conquer for all.
        mu, V, info = self._stevd(self.d, self.e, compute_v=1)
        if info != 0:
            raise LinAlgError("the tridiagonal eigenproblem did not converge")
        return mu[n - n_leading :], V[:, n - n_leading :]


def gram(P: Floats, into: Floats | None = None) -> Floats:
    """Return P P^T, added to `into` if given (lower triangle, Fortran order): half a product."""
    # BLAS wants Fortran order; of the two equal statements take the one that copies nothing.
    factor, trans = (P, 0) if P.flags.f_contiguous else (P.T, 1)
    if into is None:
        return np.asarray(dsyrk(1.0, factor, trans=trans, lower=1))
    return np.asarray(dsyrk(1.0, factor, beta=1.0, c=into, trans=trans, lower=1, overwrite_c=1))


def quadratic_form(A: Floats, B: Floats, M: Floats) -> Floats:
    """Return (a - b)^T M (a - b) for all rows, with a symmetric M that may be indefinite."""
    AM = A @ M
    forms: Floats = np.sum(AM * A, axis=1)[:, None] + np.sum((B @ M) * B, axis=1)[None, :]
    forms -= 2.0 * (AM @ B.T)
    return forms


def direction_weights(mu: Floats, *, quiet: bool = False) -> Floats:
    """Return sqrt(1 - 1/mu), the weights of directions; warn when no eigenvalue exceeds 1.

    The weights are the square root of the metric of Theorem 3. Without any eigenvalue above 1
    the leading direction is kept with weight 1.
    """
    if mu[0] > 1.0:
        return np.asarray(np.sqrt(1.0 - 1.0 / mu))
    if not quiet:
        warnings.warn(
            f"no direction separates dissimilar from similar pairs (largest eigenvalue {mu[0]:.3g} "
            "is not above 1), so the ranking is hardly better than chance. Lower reg, make it "
            "relative to the data (reg_form='relative' of k-XQDA), or check persons and cameras",
            RuntimeWarning,
            stacklevel=2,
        )
    return np.ones(len(mu))
