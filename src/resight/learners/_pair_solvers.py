"""Directions of k-XQDA from the operator A of `_pair_space`: all above 1, or the leading ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from resight.learners._base import Floats
from resight.learners._pair_space import PairPencil
from resight.learners._solvers import eigenpairs_above

# Residuals |A y - mu y|, relative to the largest mu - 1. The relative error of test distances was
# about the largest residual on 2,000 and 4,000 sightings; on some twenty sightings an acceptance of
# 6e-7 let an error of 1.7e-6 through.
_ACCEPTED = 3e-7
_LEADING = 1e-5  # where only the leading ones are wanted: the last of them are arbitrary anyway
_SEPARATE = 1e-7  # of leading vectors that are taken out before the rest is rounded
_SPREAD = 100.0  # eigenvalues that spread less need no such care
_PASSES = 3


class _Ritz(NamedTuple):
    """Best approximations of eigenpairs in a subspace, largest first."""

    mu: Floats  # (k,)
    Y: Floats  # (N, k), orthonormal
    image: Floats  # A Y
    held: Floats  # what `PairPencil.theta` needs

    @classmethod
    def among(cls, pencil: PairPencil, columns: Floats) -> _Ritz:
        """Rayleigh-Ritz in the span of some columns."""
        Y = np.linalg.qr(columns)[0]
        image, held = pencil.apply(Y)
        mu, U = eigh(Y.T @ image, driver="evd", check_finite=False)
        return cls(mu[::-1], *(M @ U[:, ::-1] for M in (Y, image, held)))

    def columns(self, chosen: slice) -> _Ritz:
        """Take some of them."""
        return _Ritz(self.mu[chosen], *(M[:, chosen] for M in self[1:]))

    def residuals(self) -> Floats:
        """Return |A y - mu y| of each column, relative to the norm of the metric (A - I)_+."""
        largest = max(self.mu.max() - 1.0, np.finfo(np.float64).tiny)
        return np.asarray(np.linalg.norm(self.image - self.Y * self.mu, axis=0) / largest)


def all_directions(pencil: PairPencil) -> tuple[Floats, Floats] | None:
    """Return all eigenvalues above 1 (at least one), largest first, and Theta.

    None if the residuals do not prove that distances are right to 1e-6.
    """
    taken = _standing_out(pencil)
    others = eigenpairs_above(pencil.rounded(taken.Y, taken.image), 1.0)[1]
    n, k = len(others), len(taken.mu) + others.shape[1]
    if k == 0:
        return None
    if 6 * k > n:
        leading = 0 if len(taken.mu) else n // 12
        if leading:
            taken = _Ritz.among(pencil, others[:, :leading].astype(np.float64))
        found = _beside(pencil, taken, others[:, leading:].astype(np.float64))
    else:  # few: float64 throughout
        found = _Ritz.among(pencil, np.hstack([taken.Y, others]))
        for _ in range(_PASSES):
            if found.residuals().max() <= _ACCEPTED:
                break
            found = _Ritz.among(pencil, found.image)
    if not found.residuals().max() <= _ACCEPTED:
        return None
    return _finished(pencil, found)


def leading_directions(pencil: PairPencil, n_leading: int) -> tuple[Floats, Floats] | None:
    """Return the largest eigenvalues above 1 (at least one, at most `n_leading`), and Theta.

    Block Lanczos with full orthogonalisation, from E and chance; None if it needs more than a
    third of all dimensions.
    """
    n = len(pencil.space.K)
    chance = np.random.default_rng(0).normal(size=(n, max(n_leading // 2, 16)))
    chance[: pencil.space.n_null] *= np.sqrt(n / pencil.space.n_null)  # where the leading ones lie
    block = np.linalg.qr(pencil.apply(chance)[0])[0]
    basis = np.empty((n, 0))
    image, held = basis, basis
    while 3 * (basis.shape[1] + block.shape[1]) <= n:
        basis = np.hstack([basis, block])
        new_image, new_held = pencil.apply(block)
        image, held = np.hstack([image, new_image]), np.hstack([held, new_held])
        if basis.shape[1] >= 2 * n_leading:
            m = basis.shape[1]
            mu, U = eigh(basis.T @ image, subset_by_index=(m - n_leading, m - 1))
            found = _Ritz(mu[::-1], *(M @ U[:, ::-1] for M in (basis, image, held)))
            wanted = found.columns(slice(max(1, int((mu > 1.0).sum()))))
            if wanted.residuals().max() <= _LEADING:
                return _finished(pencil, wanted)
        for _ in range(2):
            new_image = new_image - basis @ (basis.T @ new_image)
        block = np.linalg.qr(new_image)[0]
    return None


def _finished(pencil: PairPencil, found: _Ritz) -> tuple[Floats, Floats]:
    order = np.argsort(-found.mu, kind="stable")
    order = order[: max(1, int((found.mu > 1.0).sum()))]
    mu = found.mu[order]
    return mu, pencil.theta(found.held[:, order] / np.sqrt(mu))


def _standing_out(pencil: PairPencil) -> _Ritz:
    """Return converged eigenvectors far above the others; often there are none.

    With a small lambda one direction for each person stands out: subspace iteration from E.
    """
    n, e = len(pencil.space.K), pencil.space.n_null
    found = _Ritz(np.empty(0), *(np.empty((n, 0)) for _ in range(3)))
    if 4 * e > n:
        return found
    found = _Ritz.among(pencil, pencil.apply(np.eye(n, e))[0])
    if found.mu[0] < _SPREAD:
        return found.columns(slice(0))
    for _ in range(_PASSES):
        found = _Ritz.among(pencil, found.image)
        converged = found.residuals() <= _SEPARATE
        if converged.all():
            break
    return found.columns(slice(int(np.argmin(np.append(converged, False)))))


def _beside(pencil: PairPencil, taken: _Ritz, others: Floats) -> _Ritz:
    """Join vectors that were found in float32 to the leading ones, and make them orthogonal."""
    image, held = pencil.apply(others)
    off = taken.Y.T @ image / taken.mu[:, None]  # what is left along the leading vectors
    Y, image, held = (
        part - M @ off for part, M in zip((others, image, held), taken[1:], strict=True)
    )
    within = (Y * image).sum(axis=0)
    mu = (image * image).sum(axis=0) / within
    held *= np.sqrt(mu / within)  # so that y^T A y = mu
    parts = zip(taken, (mu, Y, image, held), strict=True)
    return _Ritz(*(np.concatenate(both, axis=-1) for both in parts))
