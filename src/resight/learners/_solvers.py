"""Leading eigenvectors of a symmetric pencil, with LAPACK's steps taken one by one.

scipy.linalg.eigh on a pencil either computes all eigenvectors or finds the wanted ones by
bisection and inverse iteration. Here only the wanted ones are computed, by the MRRR routine, and
transformed back: about a third of the work when a quarter of them is wanted.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, eigh, lapack, solve_triangular
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

    Householder reduction to tridiagonal form, MRRR for the wanted vectors, back-transformation.
    """
    n = len(C)
    if 2 * n_leading > n:  # most are wanted: divide and conquer for all is faster
        mu, V = eigh(C, lower=True, overwrite_a=True, check_finite=False, driver="evd")
        return mu[::-1][:n_leading], V[:, ::-1][:, :n_leading]
    work = int(lapack.dsytrd_lwork(n, lower=1)[0])
    reflectors, d, e, tau, _ = lapack.dsytrd(C, lower=1, lwork=work, overwrite_a=1)
    mu, V = _leading_of_tridiagonal(d, e, n_leading)
    # With lower=1 the reflectors act on rows 1..n-1 as those of a QR factorisation do.
    tail = np.asfortranarray(reflectors[1:, :-1])
    size = int(lapack.dormqr("L", "N", tail, tau, V[1:], -1)[1][0])
    V[1:] = lapack.dormqr("L", "N", tail, tau, V[1:], size)[0]
    return mu[::-1].copy(), V[:, ::-1]


def _leading_of_tridiagonal(d: Floats, e: Floats, n_leading: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, last first, of a symmetric tridiagonal matrix."""
    n = len(d)
    first = n - n_leading + 1
    padded = np.append(e, 0.0)  # dstemr wants room for n off-diagonal values
    lwork, liwork, _ = lapack.dstemr_lwork(d, padded, 2, 0.0, 1.0, first, n, compute_v=1)
    found, mu, V, info = lapack.dstemr(
        d, padded, 2, 0.0, 1.0, first, n, compute_v=1, lwork=lwork, liwork=liwork
    )
    if info == 0 and found == n_leading:
        return mu[:n_leading], np.asfortranarray(V[:, :n_leading])
    # Tight clusters below eigenvalues ten orders larger defeat MRRR: divide and conquer for all.
    mu, V, info = lapack.dstevd(d, e, compute_v=1)
    if info != 0:
        raise LinAlgError("the tridiagonal eigenproblem did not converge")
    return mu[-n_leading:], np.asfortranarray(V[:, -n_leading:])


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
