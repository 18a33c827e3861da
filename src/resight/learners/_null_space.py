"""The fast path of k-XQDA for small lambda: the null space of the similar pairs, corrected.

With lambda as small as the paper's, the leading directions almost lie where similar pairs do not
vary: F^T K theta = 0, F the range of the similar pairs' Laplacian L_S = F diag(s) F^T and E its
null space (the persons' indicators). Writing theta = E a + F b and dividing the pencil by K,

    L_D K theta / n_D = mu (L_S K theta / n_S + lambda K^-1 theta),

its F part gives v = F^T K theta in terms of theta, so b = K_FF^-1 (v - K_FE a) is a fixed-point
step that gains a factor of order lambda each time; its E part, of the size of the number of
persons, is solved by Rayleigh-Ritz. No N x N product, factorisation or eigenproblem is left, only
one Cholesky factorisation of K_FF and solves with it.

The result is returned only where a check of residuals proves it; the dense path answers
otherwise: lambda not small, K_FF singular (equal images), very wide kernels, few dimensions, or
labels that allow more directions than there are persons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import leading_pencil

Floats = NDArray[np.float64]

# The relative error of distances stayed below 0.4 r^2 for residuals r of all cases tried, so
# this keeps it below 1e-6.
_ACCEPT = 1.4e-3
_REFINE = 3e-2  # above, a step more does not help: dense is needed
_CHECKED = 17  # columns whose residual is computed


@dataclass(frozen=True)
class _Blocks:
    """The kernel in the basis [E, F], reduced to what every step needs."""

    E: sparse.csc_array  # (N, e)
    F: sparse.csc_array  # (N, f)
    s: Floats  # (f,)
    factor: tuple[Floats, bool]  # Cholesky factor of K_FF
    Z: Floats  # K_FF^-1 K_FE, (f, e)
    schur: Floats  # K_EE - K_EF Z, (e, e)

    def solve(self, M: Floats) -> Floats:
        """Return K_FF^-1 M."""
        return np.asarray(cho_solve(self.factor, M, check_finite=False))

    def inverse_kernel(self, a: Floats, b: Floats) -> Floats:
        """Return F^T K^-1 (E a + F b)."""
        in_e = np.linalg.solve(self.schur, a - self.Z.T @ b)
        return self.solve(b) - self.Z @ in_e


@dataclass(frozen=True)
class _Candidate:
    """A subspace theta = E a + F b together with its image K theta = E w + F v."""

    a: Floats
    b: Floats
    w: Floats
    v: Floats

    @classmethod
    def from_pull(cls, blocks: _Blocks, a: Floats, v: Floats) -> _Candidate:
        """Build the theta with E part `a` whose image has the F part `v`."""
        return cls(a, blocks.solve(v) - blocks.Z @ a, blocks.schur @ a + blocks.Z.T @ v, v)

    def times(self, R: Floats) -> _Candidate:
        """Recombine the columns."""
        return _Candidate(self.a @ R, self.b @ R, self.w @ R, self.v @ R)


def solve_in_null_space(
    K: Floats, pairs: CrossCameraPairs, reg: float, bound: int
) -> tuple[Floats, Floats] | None:
    """Solve the pencil of k-XQDA for all eigenvalues above 1, or return None if it cannot.

    Parameters
    ----------
    K : array (N, N)
        Training kernel.
    pairs : CrossCameraPairs
    reg : float
        lambda, absolute.
    bound : int
        The number of eigenvalues above 1 that the labels allow.

    Returns
    -------
    mu : array (bound,), largest first, and Theta : array (N, bound); or None.
    """
    E, F, s = pairs.similar.eigenbasis()
    if bound > E.shape[1]:
        return None  # some wanted directions vary between similar pairs
    try:
        blocks = _blocks(K, E, F, s)
        mu, ritz = _rayleigh_ritz(_start(blocks, pairs, reg), blocks, pairs, reg, bound)
        for refine in (True, False):
            theta = E @ ritz.a + F @ ritz.b
            residual = _largest_residual(K, pairs, reg, mu, theta)
            if residual <= _ACCEPT and mu[-1] > 1.0:
                return mu, theta
            if not (refine and residual <= _REFINE):
                return None
            v = _next_pull(ritz, mu, blocks, pairs, reg)
            improved = _Candidate.from_pull(blocks, ritz.a, v)
            mu, ritz = _rayleigh_ritz(improved, blocks, pairs, reg, bound)
    except LinAlgError:
        pass
    return None


def _blocks(K: Floats, E: sparse.csc_array, F: sparse.csc_array, s: Floats) -> _Blocks:
    in_e, in_f = E.T.tocsr(), F.T.tocsr()
    K_F = in_f @ K  # (f, N)
    K_FE = np.ascontiguousarray((in_e @ K_F.T).T)  # (f, e)
    K_EE = in_e @ (in_e @ K).T  # (e, e)
    factor = cho_factor(in_f @ K_F.T, lower=True, overwrite_a=True, check_finite=False)
    Z = np.asarray(cho_solve(factor, K_FE, check_finite=False))
    return _Blocks(E, F, s, factor, Z, K_EE - K_FE.T @ Z)


def _start(blocks: _Blocks, pairs: CrossCameraPairs, reg: float) -> _Candidate:
    """Correct the null space theta = E - F Z once: the step of `_next_pull` for a = I, mu = inf."""
    n_persons = blocks.Z.shape[1]
    in_e = np.linalg.solve(blocks.schur, np.eye(n_persons) + blocks.Z.T @ blocks.Z)
    held = blocks.solve(blocks.Z) + blocks.Z @ in_e  # -F^T K^-1 theta
    v = (reg * pairs.n_similar / blocks.s)[:, None] * held
    b = blocks.solve(v) - blocks.Z
    return _Candidate(np.eye(n_persons), b, blocks.schur + blocks.Z.T @ v, v)


def _next_pull(
    ritz: _Candidate, mu: Floats, blocks: _Blocks, pairs: CrossCameraPairs, reg: float
) -> Floats:
    """Solve the F part of the pencil for v = F^T K theta, the rest being known."""
    image = blocks.E @ ritz.w + blocks.F @ ritz.v  # K theta, (N, b)
    pushed = blocks.F.T @ pairs.mean_dissimilar(image) / mu
    held = reg * blocks.inverse_kernel(ritz.a, ritz.b)
    return (pairs.n_similar / blocks.s)[:, None] * (pushed - held)


def _rayleigh_ritz(
    space: _Candidate, blocks: _Blocks, pairs: CrossCameraPairs, reg: float, bound: int
) -> tuple[Floats, _Candidate]:
    """Best approximation of the leading eigenpairs within a subspace."""
    image = blocks.E @ space.w + blocks.F @ space.v  # K theta, (N, e)
    between = image.T @ pairs.mean_dissimilar(image)
    spread = (blocks.s / pairs.n_similar)[:, None] * space.v
    within = space.v.T @ spread + reg * (space.a.T @ space.a + space.b.T @ space.b)
    mu, R = leading_pencil(np.asfortranarray(between), np.asfortranarray(within), bound)
    return mu, space.times(R)


def _largest_residual(
    K: Floats, pairs: CrossCameraPairs, reg: float, mu: Floats, theta: Floats
) -> float:
    """Largest |A theta - mu B theta| / |mu B theta| over the extreme and some other columns."""
    n = len(mu)
    middle = np.random.default_rng(0).permutation(n)[: _CHECKED // 2]
    columns = np.unique(np.concatenate([[0], middle, np.arange(max(0, n - _CHECKED // 2), n)]))
    some = theta[:, columns]
    image = K @ some
    left = K @ pairs.mean_dissimilar(image)
    right = mu[columns] * (K @ pairs.mean_similar(image) + reg * some)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.linalg.norm(left - right, axis=0) / np.linalg.norm(right, axis=0)
    return float(np.max(ratios)) if np.isfinite(ratios).all() else np.inf
