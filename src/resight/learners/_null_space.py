"""The fast path of k-XQDA for small lambda: the null space of the similar pairs, corrected.

With lambda as small as the paper's, the leading directions almost lie where similar pairs do not
vary: F^T K theta = 0, F the range of the similar pairs' Laplacian L_S = F diag(s) F^T and E its
null space (the persons' indicators). Writing theta = E a + F b and dividing the pencil by K,

    L_D K theta / n_D = mu (L_S K theta / n_S + lambda K^-1 theta),

its F part gives v = F^T K theta in terms of theta, so b = K_FF^-1 (v - K_FE a) is a fixed-point
step that gains a factor of order lambda each time; its E part, of the size of the number of
persons, is solved by Rayleigh-Ritz. No N x N product, factorisation or eigenproblem is left, only
one Cholesky factorisation of K_FF and solves with it.

The result is returned only where two measures prove it (see `_Errors`); the dense path answers
otherwise: lambda not small, K_FF singular (equal images), very wide kernels, few dimensions, or
labels that allow more directions than there are persons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import leading_pencil

Floats = NDArray[np.float64]

# The relative error of test distances stayed below 1.2 times the next change in the thousands of
# cases tried, so this keeps it below 1e-6.
_CHANGE = 5e-7
# Residuals above these, at first and after each refinement, mean that round-off rules.
_RESIDUALS = (1e-3, 1e-5, 1e-5)
_REFINE = 2e-4  # a step divides the change by some hundreds: above this it would not do
_CHECKED = 17  # columns whose errors are measured
# Below this part of the trace of Lambda_S the dense path itself loses six digits to round-off:
# there is nothing to be equal to.
_SMALLEST = 1e-10


@dataclass(frozen=True)
class _Blocks:
    """The kernel in the basis [E, F], reduced to what every step needs."""

    E: sparse.csc_array  # (N, e)
    F: sparse.csc_array  # (N, f)
    s: Floats  # (f,)
    factor: tuple[Floats, bool]  # Cholesky factor of K_FF
    Z: Floats  # K_FF^-1 K_FE, (f, e)
    schur: Floats  # K_EE - K_EF Z, (e, e)
    schur_factor: tuple[Floats, bool]  # its Cholesky factor
    trace: float  # of K L_S K

    def solve(self, M: Floats) -> Floats:
        """Return K_FF^-1 M."""
        return np.asarray(cho_solve(self.factor, M, check_finite=False))

    def inverse_kernel(self, a: Floats, b: Floats) -> Floats:
        """Return F^T K^-1 (E a + F b)."""
        return self.solve(b) - self.Z @ self.solve_schur(a - self.Z.T @ b)

    def solve_schur(self, M: Floats) -> Floats:
        """Return schur^-1 M."""
        return np.asarray(cho_solve(self.schur_factor, M, check_finite=False))


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

    def columns(self, chosen: slice | NDArray[np.intp]) -> _Candidate:
        """Take some of the columns."""
        a, b, w, v = (part[:, chosen] for part in (self.a, self.b, self.w, self.v))
        return _Candidate(a, b, w, v)


@dataclass(frozen=True)
class _Errors:
    """How far some columns are from eigenvectors.

    The change is what the next step would alter in the functions k(x)^T theta, relative to them,
    in the norm of the kernel's function space, which bounds it for every x: the error of the
    method. The residual |A theta - mu B theta| / |mu B theta| also sees round-off.
    """

    change: float
    residual: float


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
        if reg * pairs.n_similar < _SMALLEST * blocks.trace:
            return None
        mu, ritz = _rayleigh_ritz(_start(blocks, pairs, reg), blocks, pairs, reg)
        for refinements, tolerated in enumerate(_RESIDUALS):
            if refinements:
                space = _refined(ritz, mu, blocks, pairs, reg, bound)
                mu, ritz = _rayleigh_ritz(space, blocks, pairs, reg)
            if not mu[bound - 1] > 1.0:
                return None
            errors = _errors(ritz, mu, blocks, K, pairs, reg, bound)
            if errors.change <= _CHANGE and errors.residual <= tolerated:
                found = ritz.columns(slice(bound))
                return mu[:bound], E @ found.a + F @ found.b
            if not errors.change <= _REFINE:
                return None
    except LinAlgError:
        pass
    return None


def _blocks(K: Floats, E: sparse.csc_array, F: sparse.csc_array, s: Floats) -> _Blocks:
    in_e, in_f = E.T.tocsr(), F.T.tocsr()
    K_F = in_f @ K  # (f, N)
    K_FE = np.ascontiguousarray((in_e @ K_F.T).T)  # (f, e)
    K_EE = in_e @ (in_e @ K).T  # (e, e)
    trace = float(s @ np.einsum("ij,ij->i", K_F, K_F))
    factor = cho_factor(in_f @ K_F.T, lower=True, overwrite_a=True, check_finite=False)
    Z = np.asarray(cho_solve(factor, K_FE, check_finite=False))
    schur = K_EE - K_FE.T @ Z
    schur_factor = cho_factor(schur, lower=True, check_finite=False)
    return _Blocks(E, F, s, factor, Z, schur, schur_factor, trace)


def _start(blocks: _Blocks, pairs: CrossCameraPairs, reg: float) -> _Candidate:
    """Correct the null space theta = E - F Z once: the step of `_next_pull` for a = I, mu = inf."""
    identity = np.eye(blocks.Z.shape[1])
    in_e = blocks.solve_schur(identity + blocks.Z.T @ blocks.Z)
    held = blocks.solve(blocks.Z) + blocks.Z @ in_e  # -F^T K^-1 theta
    v = (reg * pairs.n_similar / blocks.s)[:, None] * held
    b = blocks.solve(v) - blocks.Z
    return _Candidate(identity, b, blocks.schur + blocks.Z.T @ v, v)


def _refined(
    ritz: _Candidate, mu: Floats, blocks: _Blocks, pairs: CrossCameraPairs, reg: float, bound: int
) -> _Candidate:
    """Take one step with the leading vectors and keep the rest, so that E stays covered."""
    pull = _next_pull(ritz.columns(slice(bound)), mu[:bound], blocks, pairs, reg)
    v = np.hstack([pull, ritz.v[:, bound:]])
    return _Candidate.from_pull(blocks, ritz.a, v)


def _next_pull(
    ritz: _Candidate, mu: Floats, blocks: _Blocks, pairs: CrossCameraPairs, reg: float
) -> Floats:
    """Solve the F part of the pencil for v = F^T K theta, the rest being known."""
    image = blocks.E @ ritz.w + blocks.F @ ritz.v  # K theta, (N, b)
    pushed = blocks.F.T @ pairs.mean_dissimilar(image) / mu
    held = reg * blocks.inverse_kernel(ritz.a, ritz.b)
    return (pairs.n_similar / blocks.s)[:, None] * (pushed - held)


def _rayleigh_ritz(
    space: _Candidate, blocks: _Blocks, pairs: CrossCameraPairs, reg: float
) -> tuple[Floats, _Candidate]:
    """Best approximations of eigenpairs within a subspace, largest first."""
    image = blocks.E @ space.w + blocks.F @ space.v  # K theta, (N, e)
    between = image.T @ pairs.mean_dissimilar(image)
    spread = (blocks.s / pairs.n_similar)[:, None] * space.v
    within = space.v.T @ spread + reg * (space.a.T @ space.a + space.b.T @ space.b)
    mu, R = leading_pencil(np.asfortranarray(between), np.asfortranarray(within), len(within))
    return mu, space.times(R)


def _errors(
    ritz: _Candidate,
    mu: Floats,
    blocks: _Blocks,
    K: Floats,
    pairs: CrossCameraPairs,
    reg: float,
    bound: int,
) -> _Errors:
    """Measure the leading, the last and some other of the wanted columns."""
    middle = np.random.default_rng(0).permutation(bound)[: _CHECKED // 2]
    last = np.arange(max(0, bound - _CHECKED // 2), bound)
    columns = np.unique(np.concatenate([[0], middle, last]))
    some, values = ritz.columns(columns), mu[columns]
    step = _next_pull(some, values, blocks, pairs, reg) - some.v
    norms = np.linalg.norm(solve_triangular(blocks.factor[0], step, lower=True), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # |f|^2 = theta^T K theta, and a step dv changes theta by F K_FF^-1 dv
        changes = norms / np.sqrt((some.a * some.w).sum(axis=0) + (some.b * some.v).sum(axis=0))
    theta = blocks.E @ some.a + blocks.F @ some.b
    return _Errors(_largest(changes), _largest(_residuals(K, pairs, reg, values, theta)))


def _residuals(K: Floats, pairs: CrossCameraPairs, reg: float, mu: Floats, theta: Floats) -> Floats:
    """Return |A theta - mu B theta| / |mu B theta| of each column."""
    image = K @ theta
    left = K @ pairs.mean_dissimilar(image)
    right = mu * (K @ pairs.mean_similar(image) + reg * theta)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Floats = np.linalg.norm(left - right, axis=0) / np.linalg.norm(right, axis=0)
    return ratios


def _largest(values: Floats) -> float:
    return float(np.max(values)) if np.isfinite(values).all() else np.inf
