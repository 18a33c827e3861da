"""Leading eigenvectors of a symmetric pencil, with LAPACK's steps taken one by one.

scipy.linalg.eigh on a pencil either computes all eigenvectors or finds the wanted ones by
bisection and inverse iteration. Here only the wanted ones are computed, by the MRRR routine, and
transformed back: about a third of the work when a quarter of them is wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack, solve_triangular
from scipy.linalg.blas import dsyrk

from resight.learners._base import Floats


def leading_pencil(A: Floats, B: Floats, n_leading: int) -> tuple[Floats, Floats]:
    """Solve A v = mu B v for the largest mu; return them, largest first, and V with V^T B V = I.

    Both matrices (N, N), in Fortran order, are overwritten; their lower triangles count. Raises
    LinAlgError if B is not positive definite to working precision.
    """
    L, info = lapack.dpotrf(B, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        raise LinAlgError("the regularised within matrix is not positive definite")
    C, _ = lapack.dsygst(A, L, itype=1, lower=1, overwrite_a=1)  # L^-1 A L^-T
    mu, V = leading_eigenpairs(C, n_leading)
    return mu, solve_triangular(L, V, lower=True, trans="T", overwrite_b=True, check_finite=False)


def leading_eigenpairs(C: Floats, n_leading: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, first first, and their vectors; C is overwritten.

    Householder reduction to tridiagonal form, the wanted vectors of that, back-transformation.
    """
    return _Tridiagonal(C).leading(n_leading)


def eigenpairs_above(
    C: NDArray[Any], threshold: float, most: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the eigenvalues above a threshold, at most so many, largest first, and vectors.

    C, float32 or float64, is overwritten; its lower triangle counts.
    """
    tridiagonal = _Tridiagonal(C)
    return tridiagonal.leading(min(most, tridiagonal.count_above(threshold)))


class _Tridiagonal:
    """A symmetric matrix (lower triangle, Fortran order, overwritten) reduced by reflections."""

    def __init__(self, C: NDArray[Any]) -> None:
        single = C.dtype == np.float32
        self._ormqr = lapack.sormqr if single else lapack.dormqr
        # Divide and conquer; SciPy for Python 3.10 offers the slower QR iteration only.
        slower = lapack.sstev if single else lapack.dstev
        self._stevd = getattr(lapack, "sstevd" if single else "dstevd", slower)
        sytrd = lapack.ssytrd if single else lapack.dsytrd
        lwork = lapack.ssytrd_lwork if single else lapack.dsytrd_lwork
        work = int(lwork(len(C), lower=1)[0])
        self._reflectors, self.d, self.e, self._tau, _ = sytrd(
            C, lower=1, lwork=work, overwrite_a=1
        )

    def count_above(self, threshold: float) -> int:
        """Count the eigenvalues above a threshold."""
        values, info = lapack.dsterf(self.d, self.e)
        if info != 0:
            raise LinAlgError("the tridiagonal eigenproblem did not converge")
        return int((values > threshold).sum())

    def leading(self, n_leading: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest eigenvalues, first first, and vectors of the matrix."""
        mu, V = self._leading_of_tridiagonal(n_leading)
        V = np.asfortranarray(V, dtype=self.d.dtype)
        if V.size > 1:
            # With lower=1 the reflectors act on rows 1..n-1 as those of a QR factorisation do.
            tail = np.asfortranarray(self._reflectors[1:, :-1])
            size = int(self._ormqr("L", "N", tail, self._tau, V[1:], -1)[1][0])
            V[1:] = self._ormqr("L", "N", tail, self._tau, V[1:], size)[0]
        return mu[::-1].copy(), V[:, ::-1]

    def _leading_of_tridiagonal(self, n_leading: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest eigenvalues, last first, and vectors of the tridiagonal matrix."""
        n = len(self.d)
        if n == 1:
            return self.d, np.ones((1, 1))
        if 0 < 3 * n_leading <= n:  # MRRR for the wanted ones, in float64 always: it costs little
            padded = np.append(self.e, 0.0)  # dstemr wants room for n off-diagonal values
            wanted = (self.d, padded, 2, 0.0, 1.0, n - n_leading + 1, n)
            lwork, liwork, _ = lapack.dstemr_lwork(*wanted, compute_v=1)
            found, mu, V, info = lapack.dstemr(*wanted, compute_v=1, lwork=lwork, liwork=liwork)
            if info == 0 and found == n_leading:
                return mu[:n_leading], V[:, :n_leading]
        # Most are wanted, or tight clusters below eigenvalues ten orders larger defeated MRRR:
        # divide and conquer for all.
        mu, V, info = self._stevd(self.d, self.e, compute_v=1)
        if info != 0:
            raise LinAlgError("the tridiagonal eigenproblem did not converge")
        return mu[n - n_leading :], V[:, n - n_leading :]


def gram(P: Floats, scale: float = 1.0, into: Floats | None = None) -> Floats:
    """Return ``into + scale P P^T`` (lower triangle, Fortran order) by one symmetric update."""
    # BLAS wants Fortran order; of the two equal statements take the one that copies nothing.
    factor, trans = (P, 0) if P.flags.f_contiguous else (P.T, 1)
    if into is None:
        updated: Floats = dsyrk(scale, factor, trans=trans, lower=1)
    else:
        updated = dsyrk(scale, factor, beta=1.0, c=into, trans=trans, lower=1, overwrite_c=1)
    return updated


def quadratic_form(A: Floats, B: Floats, M: Floats) -> Floats:
    """Return (a - b)^T M (a - b) for all rows, with a symmetric M that may be indefinite."""
    AM = A @ M
    forms: Floats = np.sum(AM * A, axis=1)[:, None] + np.sum((B @ M) * B, axis=1)[None, :]
    forms -= 2.0 * (AM @ B.T)
    return forms
