"""Directions of k-XQDA from the operator A of `_pair_space`: all above 1, or the leading ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from resight.learners._base import Codes, Floats
from resight.learners._pair_space import PairPencil
from resight.learners._solvers import leading_eigenpairs

# Residuals |A y - mu y|, relative to the largest mu - 1. The relative error of test distances was
# at most the largest residual on 2,000 sightings, but 1.04e-6 in one random case of 28 sightings:
# fewer sightings leave more of a test sighting unexplained.
_ACCEPTED = 3e-7
_TYPICAL = 1000  # sightings; with fewer, less is accepted
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

    def columns(self, chosen: slice | Codes) -> _Ritz:
        """Take some of them."""
        return _Ritz(self.mu[chosen], *(M[:, chosen] for M in self[1:]))

    def joined(self, other: _Ritz) -> _Ritz:
        """Put the columns of both side by side."""
        return _Ritz(*(np.concatenate(both, axis=-1) for both in zip(self, other, strict=True)))

    def theta(self, pencil: PairPencil) -> Floats:
        """Return the directions, orthonormal under the regularised Lambda_S."""
        return pencil.theta(self.held / np.sqrt(self.mu))

    def residuals(self) -> Floats:
        """Return |A y - mu y| of each column, relative to the norm of the metric (A - I)_+."""
        largest = max(self.mu.max() - 1.0, np.finfo(np.float64).tiny)
        return np.asarray(np.linalg.norm(self.image - self.Y * self.mu, axis=0) / largest)

    def accepted(self) -> bool:
        """Whether residuals show that distances are right to 1e-6."""
        limit = _ACCEPTED * min(1.0, (len(self.Y) / _TYPICAL) ** 0.5)
        return bool(self.residuals().max() <= limit)


def all_directions(
    pencil: PairPencil, n_components: int | None = None, *, at_hand: bool = False
) -> tuple[Floats, Floats] | None:
    """Return the eigenvalues above 1 (at least one), largest first, and Theta.

    None if the residuals do not prove that distances are right to 1e-6, or if others than those
    that stand out may be above 1 and only what is `at_hand` is asked for. With `n_components` only
    so many are computed, and a few more, without which float32 would mix those at the cut.
    """
    taken, bound = _standing_out(pencil), pencil.space.bound
    if len(taken.mu) >= bound and taken.mu[bound - 1] > 1.0 and taken.accepted():
        return taken.mu, taken.theta(pencil)
    if at_hand:
        return None
    n = len(taken.Y)
    most = n if n_components is None else n_components + max(8, n_components // 4)
    A = pencil.rounded(taken.Y, taken.image)
    others = leading_eigenpairs(A, max(0, most - len(taken.mu)), above=1.0)[1].astype(np.float64)
    k = len(taken.mu) + others.shape[1]
    if most < n or 6 * k <= n:  # few, or a cut between them: Rayleigh-Ritz with all
        found = _Ritz.among(pencil, np.hstack([taken.Y, others]))
        for _ in range(_PASSES):
            if found.columns(slice(n_components)).accepted():
                break
            found = _Ritz.among(pencil, found.image)
        found = found.columns(slice(n_components))
    else:
        if not len(taken.mu):
            taken, others = _Ritz.among(pencil, others[:, : n // 12]), others[:, n // 12 :]
        found = taken.joined(_beside(pencil, taken, others))
    if not found.accepted():
        return None
    order = np.argsort(-found.mu, kind="stable")
    order = order[: max(1, int((found.mu > 1.0).sum()))]
    return found.mu[order], found.columns(order).theta(pencil)


def leading_directions(
    pencil: PairPencil, n_leading: int, *, roughly: bool = False
) -> tuple[Floats, Floats] | None:
    """Return the largest eigenvalues above 1 (at least one, at most `n_leading`), and Theta.

    Block Lanczos with full orthogonalisation, from E and chance. None if no eigenvalue stands out,
    or if it needs more than a third of all dimensions. `roughly` takes the best of twice as many
    dimensions for granted.
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
        m = basis.shape[1]
        if m >= 2 * n_leading or not roughly:
            mu, U = eigh(basis.T @ image, subset_by_index=(max(0, m - n_leading), m - 1))
            if mu[-1] < _SPREAD and not roughly:
                return None
        if m >= 2 * n_leading:
            found = _Ritz(mu[::-1], *(M @ U[:, ::-1] for M in (basis, image, held)))
            wanted = found.columns(slice(max(1, int((mu > 1.0).sum()))))
            if roughly or wanted.accepted():
                return wanted.mu, wanted.theta(pencil)
        for _ in range(2):
            new_image = new_image - basis @ (basis.T @ new_image)
        block = np.linalg.qr(new_image)[0]
    return None


def _standing_out(pencil: PairPencil) -> _Ritz:
    """Return converged eigenvectors far above the others; often there are none.

    With a small lambda one direction for each person stands out: subspace iteration from E.
    """
    n, e = len(pencil.space.K), pencil.space.n_null
    wanted = min(e - 1, pencil.space.bound)  # in one dimension of E persons do not differ
    if 3 * e > n or wanted == 0:
        return _Ritz(np.empty(0), *(np.empty((n, 0)) for _ in range(3)))
    columns = pencil.apply(pencil.start())[0]
    for _ in range(_PASSES):
        found = _Ritz.among(pencil, columns)
        converged = found.residuals()[:wanted] <= _SEPARATE
        if found.mu[0] < _SPREAD or converged.all():
            break
        columns = found.image
    if found.mu[0] < _SPREAD:
        return found.columns(slice(0))
    return found.columns(slice(int(np.argmin(np.append(converged, False)))))


def _beside(pencil: PairPencil, taken: _Ritz, others: Floats) -> _Ritz:
    """Make vectors that were found in float32 orthogonal to the leading ones."""
    image, held = pencil.apply(others)
    off = taken.Y.T @ image / taken.mu[:, None]  # what is left along the leading vectors
    Y, image, held = (
        part - M @ off for part, M in zip((others, image, held), taken[1:], strict=True)
    )
    within = (Y * image).sum(axis=0)
    mu = (image * image).sum(axis=0) / within
    held *= np.sqrt(mu / within)  # so that y^T A y = mu
    return _Ritz(mu, Y, image, held)
