"""The fast path of k-XQDA for small lambda: the null space of the similar pairs, corrected.

With lambda as small as the paper's, the leading directions almost lie where similar pairs do not
vary: F^T K theta = 0, F the range of the similar pairs' Laplacian L_S = F diag(s) F^T and E its
null space (the persons' indicators). Writing theta = E a + F b and dividing the pencil by K,

    L_D K theta / n_D = mu (L_S K theta / n_S + lambda K^-1 theta),

its F part gives v = F^T K theta in terms of theta, so b = K_FF^-1 (v - K_FE a) is a fixed-point
step that gains a factor of order lambda each time; its E part, of the size of the number of
persons, is solved by Rayleigh-Ritz. No N x N product, factorisation or eigenproblem is left, only
one Cholesky factorisation of K_FF and solves with it.

The result is returned only where two measures prove it (see `errors`); the dense path answers
otherwise: lambda not small, K_FF singular (equal images), very wide kernels, few dimensions, or
labels that allow more directions than there are persons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from resight.learners._base import Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import leading_pencil

# The relative error of test distances stayed below 1.2 times the next change in the thousands of
# cases tried, so this keeps it below 1e-6.
_CHANGE = 5e-7
# Residuals above these, at first and after each refinement, mean that round-off rules.
_RESIDUALS = (1e-3, 1e-5, 1e-5)
_REFINE = 2e-4  # a step divides the change by some hundreds: above this it would not do
_CHECKED = 17  # columns whose errors are measured
LOSES_DIGITS = 1e-10
"""Below this part of the trace of Lambda_S the dense path itself loses six digits to round-off:
there is nothing to be equal to."""


@dataclass(frozen=True)
class _Candidate:
    """A subspace theta = E a + F b together with its image K theta = E w + F v."""

    a: Floats
    b: Floats
    w: Floats
    v: Floats

    def times(self, R: Floats) -> _Candidate:
        """Recombine the columns."""
        return _Candidate(self.a @ R, self.b @ R, self.w @ R, self.v @ R)

    def columns(self, chosen: slice | NDArray[np.intp]) -> _Candidate:
        """Take some of the columns."""
        a, b, w, v = (part[:, chosen] for part in (self.a, self.b, self.w, self.v))
        return _Candidate(a, b, w, v)


def solve_in_null_space(
    K: Floats, pairs: CrossCameraPairs, reg: float, bound: int
) -> tuple[Floats, Floats] | None:
    """Solve the pencil of k-XQDA for all `bound` eigenvalues above 1 that the labels allow.

    With the training kernel (N, N) and the absolute lambda `reg`; returns mu, largest first, and
    Theta (N, bound), or None if it cannot.
    """
    basis = pairs.similar.eigenbasis()
    if bound > basis[0].shape[1]:
        return None  # some wanted directions vary between similar pairs
    try:
        pencil = _Pencil(K, pairs, reg, basis)
        if reg * pairs.n_similar < LOSES_DIGITS * pencil.trace:
            return None
        mu, ritz = pencil.rayleigh_ritz(pencil.start())
        for refinements, tolerated in enumerate(_RESIDUALS):
            if refinements:
                mu, ritz = pencil.rayleigh_ritz(pencil.refined(ritz, mu, bound))
            if not mu[bound - 1] > 1.0:
                return None
            change, residual = pencil.errors(ritz, mu, bound)
            if change <= _CHANGE and residual <= tolerated:
                return mu[:bound], pencil.theta(ritz.columns(slice(bound)))
            if not change <= _REFINE:
                return None
    except LinAlgError:
        pass
    return None


class _Pencil:
    """The pencil in the basis [E, F], reduced to what every step needs; s as in L_S F = F s."""

    def __init__(
        self,
        K: Floats,
        pairs: CrossCameraPairs,
        reg: float,
        basis: tuple[sparse.csc_array, sparse.csc_array, Floats],
    ) -> None:
        self.K, self.pairs, self.reg = K, pairs, reg
        self.E, self.F, self.s = basis  # (N, e), (N, f), (f,)
        in_e, in_f = self.E.T.tocsr(), self.F.T.tocsr()
        K_F = in_f @ K  # (f, N)
        K_FE = np.ascontiguousarray((in_e @ K_F.T).T)  # (f, e)
        K_EE = in_e @ (in_e @ K).T  # (e, e)
        self.trace = float(self.s @ np.einsum("ij,ij->i", K_F, K_F))  # of K L_S K
        self.factor = cho_factor(in_f @ K_F.T, lower=True, overwrite_a=True, check_finite=False)
        self.Z = self.solve(K_FE)  # K_FF^-1 K_FE, (f, e)
        self.schur = K_EE - K_FE.T @ self.Z  # (e, e)
        self.schur_factor = cho_factor(self.schur, lower=True, check_finite=False)

    def solve(self, M: Floats) -> Floats:
        """Return K_FF^-1 M."""
        return np.asarray(cho_solve(self.factor, M, check_finite=False))

    def solve_schur(self, M: Floats) -> Floats:
        """Return schur^-1 M."""
        return np.asarray(cho_solve(self.schur_factor, M, check_finite=False))

    def theta(self, found: _Candidate) -> Floats:
        """Return E a + F b."""
        return np.asarray(self.E @ found.a + self.F @ found.b)

    def image(self, found: _Candidate) -> Floats:
        """Return K theta, (N, columns)."""
        return np.asarray(self.E @ found.w + self.F @ found.v)

    def start(self) -> _Candidate:
        """Correct the null space theta = E - F Z once: `_next_pull` for a = I, mu = inf."""
        identity = np.eye(self.Z.shape[1])
        in_e = self.solve_schur(identity + self.Z.T @ self.Z)
        held = self.solve(self.Z) + self.Z @ in_e  # -F^T K^-1 theta
        v = (self.reg * self.pairs.n_similar / self.s)[:, None] * held
        return _Candidate(identity, self.solve(v) - self.Z, self.schur + self.Z.T @ v, v)

    def refined(self, ritz: _Candidate, mu: Floats, bound: int) -> _Candidate:
        """Take one step with the leading vectors and keep the rest, so that E stays covered."""
        pull = self._next_pull(ritz.columns(slice(bound)), mu[:bound])
        a, v = ritz.a, np.hstack([pull, ritz.v[:, bound:]])
        # The theta with E part a whose image has the F part v.
        return _Candidate(a, self.solve(v) - self.Z @ a, self.schur @ a + self.Z.T @ v, v)

    def rayleigh_ritz(self, space: _Candidate) -> tuple[Floats, _Candidate]:
        """Best approximations of eigenpairs within a subspace, largest first."""
        image = self.image(space)  # (N, e)
        between = image.T @ self.pairs.mean_dissimilar(image)
        spread = (self.s / self.pairs.n_similar)[:, None] * space.v
        within = space.v.T @ spread + self.reg * (space.a.T @ space.a + space.b.T @ space.b)
        mu, R = leading_pencil(np.asfortranarray(between), np.asfortranarray(within), len(within))
        return mu, space.times(R)

    def errors(self, ritz: _Candidate, mu: Floats, bound: int) -> tuple[float, float]:
        """Measure how far the leading, the last and some other columns are from eigenvectors.

        The change is what the next step would alter in the functions k(x)^T theta, relative to
        them, in the norm of the kernel's function space, which bounds it for every x: the error of
        the method. The residual |A theta - mu B theta| / |mu B theta| also sees round-off.
        """
        middle = np.random.default_rng(0).permutation(bound)[: _CHECKED // 2]
        last = np.arange(max(0, bound - _CHECKED // 2), bound)
        columns = np.unique(np.concatenate([[0], middle, last]))
        some, values = ritz.columns(columns), mu[columns]
        step = self._next_pull(some, values) - some.v
        norms = np.linalg.norm(solve_triangular(self.factor[0], step, lower=True), axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            # |f|^2 = theta^T K theta, and a step dv changes theta by F K_FF^-1 dv
            changes = norms / np.sqrt((some.a * some.w).sum(axis=0) + (some.b * some.v).sum(axis=0))
        return _largest(changes), _largest(self._residuals(values, self.theta(some)))

    def _next_pull(self, ritz: _Candidate, mu: Floats) -> Floats:
        """Solve the F part of the pencil for v = F^T K theta, the rest being known."""
        pushed = self.F.T @ self.pairs.mean_dissimilar(self.image(ritz)) / mu
        a, b = ritz.a, ritz.b
        inverse = self.solve(b) - self.Z @ self.solve_schur(a - self.Z.T @ b)  # F^T K^-1 theta
        return np.asarray((self.pairs.n_similar / self.s)[:, None] * (pushed - self.reg * inverse))

    def _residuals(self, mu: Floats, theta: Floats) -> Floats:
        """Return |A theta - mu B theta| / |mu B theta| of each column."""
        image = self.K @ theta
        left = self.K @ self.pairs.mean_dissimilar(image)
        right = mu * (self.K @ self.pairs.mean_similar(image) + self.reg * theta)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios: Floats = np.linalg.norm(left - right, axis=0) / np.linalg.norm(right, axis=0)
        return ratios


def _largest(values: Floats) -> float:
    return float(np.max(values)) if np.isfinite(values).all() else np.inf
