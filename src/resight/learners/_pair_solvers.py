"""Directions of k-XQDA from the operator A of `_pair_space`: all above 1, or the leading ones.

Block Lanczos finds them where they are few. Where they are many, subspace iteration finds those
that stand out (with a small lambda one for each person), a decomposition in float32 the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh

from resight.learners._base import Codes, Floats
from resight.learners._pair_space import PairPencil, gaps_to
from resight.learners._solvers import leading_eigenpairs

# Residuals |A y - mu y|, relative to `_norm` of the metric. The relative error of test distances
# was at most the largest residual on 2,000 sightings, but 1.04e-6 in one random case of 28: fewer
# sightings leave more of a test sighting unexplained.
_ACCEPTED = 3e-7
_TYPICAL = 1000  # sightings; with fewer, less is accepted
_CONVERGED = 1e-7  # of vectors that are few, or stand out
_SPREAD = 100.0  # largest eigenvalue from which some stand out, and float32 proves many others
_APART = 8.0  # times smaller eigenvalues may be decomposed in float32
_PASSES = 3
_LEADING = 20  # one direction of so many is made exact by Rayleigh-Ritz
_OUTLIERS = 20  # one eigenvalue of so many may be an outlier: `_norm` does without them
_ALONE = 1e3  # at most the norm of a metric of one direction
_STRIP = 256  # rows whose residuals are computed at once
_BLOCK = 32  # vectors that block Lanczos multiplies at once
_FIRST_STEPS = 8  # of block Lanczos, after which it is known how many directions to expect
_SPREAD_REFINED = 5.0  # the same after Rayleigh-Ritz with all
_REFINED = 6  # times as many dimensions as directions: then Rayleigh-Ritz with all is affordable
_FEW = 9  # times as many dimensions as directions: then block Lanczos alone is faster
_COINCIDE = 1e-6  # of an eigenvalue: nearer ones may be cut apart anywhere
_LONGEST = 5  # times as many dimensions as directions, or as after the first steps, are tried
_LAST_STEPS = 4  # from chance anew, after which nothing must have changed


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

    def theta(self, pencil: PairPencil) -> Floats:
        """Return the directions, orthonormal under the regularised Lambda_S."""
        return pencil.theta(self.held / np.sqrt(self.mu))

    def residuals(self) -> Floats:
        """Return |A y - mu y| of each column."""
        squares = np.zeros(len(self.mu))
        for start in range(0, len(self.Y), _STRIP):  # what is subtracted stays in the cache
            rows = slice(start, start + _STRIP)
            rest = self.image[rows] - self.Y[rows] * self.mu
            squares += np.einsum("ij,ij->j", rest, rest)
        return np.sqrt(squares)

    def accepted(self, beyond: float = 1.0, norm: float | None = None) -> bool:
        """Whether residuals show that distances are right to 1e-6.

        `beyond` is the next eigenvalue, if directions are cut off there: a residual mixes with it.
        `norm` is that of the metric, if these are not all of its directions.
        """
        limit = _ACCEPTED * min(1.0, (len(self.Y) / _TYPICAL) ** 0.5)
        limit *= _norm(self.mu) if norm is None else norm
        return bool((self.residuals() * _mixing(self.mu, beyond)).max() <= limit)


def _norm(mu: Floats) -> float:
    """Return what residuals are compared with: the largest eigenvalue of the metric (A - I)_+.

    A few may be far above all others, as those of one person whose images are nearly the same and
    unlike all others. Sightings that resemble none of them have no part in these, so it is at most
    the Frobenius norm of the metric without the largest twentieth; a single one may be an outlier.
    """
    above = np.sort(mu[mu > 1.0])[::-1] - 1.0
    if len(above) < 2:
        return float(np.clip(mu.max() - 1.0, np.finfo(np.float64).tiny, _ALONE))
    return float(min(above[0], np.linalg.norm(above[1 + len(above) // _OUTLIERS :])))


def _mixing(mu: Floats, beyond: float) -> Floats:
    """Return how errors of vectors grow where the eigenvalues from `beyond` on are cut off."""
    above = mu - 1.0
    gaps = np.maximum(mu - max(beyond, 1.0), _COINCIDE * np.abs(above))
    return np.maximum(above / np.maximum(gaps, np.finfo(np.float64).tiny), 1.0)


def directions(
    pencil: PairPencil, n_components: int | None = None, *, at_hand: bool = False
) -> tuple[Floats, Floats, str] | None:
    """Return the largest eigenvalues above 1 (at least one), largest first, Theta, and the path.

    All of them, or at most `n_components`. None if the residuals do not prove that distances are
    right to 1e-6, or if others than those that stand out may be above 1 and only what is `at_hand`
    is asked for; LinAlgError where that is clear at once.
    """
    if pencil.power == 1 or n_components is not None:  # otherwise there are many
        few = _few(pencil, n_components)
        if few is not None:
            return few.mu, few.theta(pencil), "krylov"
    bound = pencil.space.bound
    if bound >= pencil.space.n_null:  # a decomposition will follow
        pencil.invert()
    taken = _standing_out(pencil)
    if len(taken.mu) >= bound and taken.mu[bound - 1] > 1.0:
        wanted = _cut(taken, n_components)
        if wanted is not None:
            return wanted.mu, wanted.theta(pencil), "pairs"
    if at_hand:
        return None
    found = _decomposed(pencil, taken, n_components)
    if found is None:
        return None
    mu, held = found
    order = np.argsort(-mu, kind="stable")[: max(1, int((mu > 1.0).sum()))]
    return mu[order], pencil.theta(held[:, order] / np.sqrt(mu[order])), "pairs"


def rough_directions(pencil: PairPencil, n_leading: int) -> Floats:
    """Return Theta of nearly the leading directions, at most as many as E has, unchecked."""
    found = _Ritz.among(pencil, pencil.start()[:, -n_leading:])
    return found.columns(slice(max(1, int((found.mu > 1.0).sum())))).theta(pencil)


class _Krylov:
    """Block Lanczos from chance, with full orthogonalisation."""

    def __init__(self, pencil: PairPencil) -> None:
        n = len(pencil.space.K)
        self.size = max(1, min(_BLOCK, n // 20))
        self.m, self._most = 0, min(n, max(n // 3, 2 * _FIRST_STEPS * self.size))
        self._pencil, self._rng = pencil, np.random.default_rng(0)
        # Q, A Q and what `PairPencil.theta` needs of them; memory is used as they grow.
        self._basis, self._image, self._held = np.empty((3, self._most, n)).transpose(0, 2, 1)
        self._projected = np.empty((self._most, self._most), order="F")  # Q^T A Q, lower triangle
        self.start_anew()

    def start_anew(self) -> None:
        """Go on from chance: the first vectors may have had no part in some directions."""
        within = self._basis[:, : self.m]
        block = self._rng.normal(size=(len(within), self.size))
        for _ in range(2):
            block = np.linalg.qr(block - within @ (within.T @ block))[0]
        self._block, self._link = block, np.zeros((self.size, self.size))

    def grow(self) -> bool:
        """Add a block; False if there is no room."""
        new = slice(self.m, self.m + self.size)
        if new.stop > self._most:
            return False
        self._basis[:, new], self.m = self._block, new.stop
        self._image[:, new], self._held[:, new] = self._pencil.apply(self._block)
        within = self._basis[:, : self.m]
        self._projected[new, : self.m] = self._image[:, new].T @ within
        block, link = np.linalg.qr(self._image[:, new] - within @ self._projected[new, : self.m].T)
        self._block, again = np.linalg.qr(block - within @ (within.T @ block))
        self._link = again @ link
        return True

    def leading(self, most: int) -> tuple[Floats, Floats, Floats]:
        """Return the leading Ritz values above 1 (at least one), coordinates, and residuals.

        What was left over where Lanczos began anew is not in these residuals.
        """
        mu, U = leading_eigenpairs(self._projected[: self.m, : self.m].copy(order="F"), most, 1.0)
        return mu, U, np.asarray(np.linalg.norm(self._link @ U[-self.size :], axis=0))

    def ritz(self, mu: Floats, U: Floats) -> _Ritz:
        """Return what has these coordinates."""
        return _Ritz(mu, *(M[:, : self.m] @ U for M in (self._basis, self._image, self._held)))


def _few(pencil: PairPencil, n_components: int | None) -> _Ritz | None:
    """Return all leading eigenvectors that are wanted; None if Lanczos is not for so many.

    Raises LinAlgError where float32 would not do for more, or none is above 1.
    """
    n, bound, krylov = len(pencil.space.K), pencil.space.bound, _Krylov(pencil)
    most = min(bound, n_components or bound)
    for _ in range(_FIRST_STEPS):
        krylov.grow()
    mu, U, left = krylov.leading(n)
    # Gauss quadrature: the share of the first vectors in the values above 1 tells how many.
    expected = 1.1 * n / krylov.size * float((U[: krylov.size] ** 2).sum())
    wanted = min(most, round(expected))
    many, least = _FEW * wanted > n, _SPREAD if _REFINED * wanted > n else _SPREAD_REFINED
    if mu[0] + left[0] < 1.0 or (many and mu[0] < least):
        raise LinAlgError("residuals would not be accepted")
    if many:
        return None
    before, next_look = np.empty(0), 2 * wanted
    longest = _LONGEST * max(wanted, krylov.m)
    while krylov.m <= longest and krylov.grow():
        if krylov.m < next_look:
            continue
        mu, U, left = krylov.leading(most + 1)
        beyond = mu[most] if len(mu) > most else 1.0
        mu, U, left = mu[:most], U[:, :most], left[:most]
        limit, next_look = _CONVERGED * _norm(mu), krylov.m + krylov.m // 8
        if (left * _mixing(mu, beyond) <= limit).all():
            same = len(mu) == len(before) and np.abs(mu - before).max() <= limit
            if same or len(mu) == bound:  # more are not possible
                found = krylov.ritz(mu, U)
                return found if found.accepted(beyond) else None
            before, next_look = mu, krylov.m + _LAST_STEPS * krylov.size
            krylov.start_anew()
    return None


def _cut(found: _Ritz, n_components: int | None) -> _Ritz | None:
    """Return the first directions if they are proven, the next eigenvalue considered."""
    wanted = found.columns(slice(n_components))
    beyond = found.mu[len(wanted.mu) :][:1].max(initial=1.0)
    return wanted if wanted.accepted(float(beyond)) else None


def _decomposed(
    pencil: PairPencil, taken: _Ritz, n_components: int | None
) -> tuple[Floats, Floats] | None:
    """Find what is above 1 beside the vectors taken out, by a decomposition in float32.

    Returns eigenvalues and, as in `_Ritz`, what is held of all vectors; None if not proven.
    With `n_components` only so many are computed, and a few more, without which float32 would mix
    those at the cut.
    """
    n = len(taken.Y)
    most = n if n_components is None else n_components + max(8, n_components // 4)
    A, lift = pencil.beside(taken.Y, taken.image)
    others = lift(leading_eigenpairs(A, max(0, most - len(taken.mu)), above=1.0)[1])
    del A
    k = len(taken.mu) + others.shape[1]
    if n_components is not None or _REFINED * k <= n:  # Rayleigh-Ritz with all: they are few
        found = _Ritz.among(pencil, np.hstack([taken.Y, others]))
        for _ in range(_PASSES):
            wanted = _cut(found, n_components)
            if wanted is not None:
                return wanted.mu, wanted.held
            found = _Ritz.among(pencil, found.image)
        return None
    more = n // _LEADING - len(taken.mu)
    if more > 0:  # residuals are largest, and cheaply made smaller, where mu is
        columns, others = np.hstack([taken.Y, others[:, :more]]), others[:, more:]
        for _ in range(_PASSES):
            taken = _Ritz.among(pencil, columns)
            if taken.accepted():
                break
            columns = taken.image
        else:
            return None
        others -= taken.Y @ (taken.Y.T @ others)
    image, held = pencil.apply(others)
    within = np.einsum("ij,ij->j", others, image)
    mu = np.einsum("ij,ij->j", image, image) / within
    held *= np.sqrt(mu / within)  # so that y^T A y = mu
    norm = _norm(np.append(taken.mu, mu))
    for found in (taken, _Ritz(mu, others, image, held)):
        if len(found.mu) and not found.accepted(norm=norm):
            return None
    return np.append(taken.mu, mu), np.hstack([taken.held, held])


def _standing_out(pencil: PairPencil) -> _Ritz:
    """Return converged eigenvectors far above the others; often there are none.

    With a small lambda one direction for each person stands out: subspace iteration from E.
    """
    n, e = len(pencil.space.K), pencil.space.n_null
    wanted = min(e - 1, pencil.space.bound)  # in one dimension of E persons do not differ
    if 3 * e > n or wanted == 0:
        return _Ritz(np.empty(0), *(np.empty((n, 0)) for _ in range(3)))
    columns, decomposed = pencil.start(), pencil.space.bound >= e
    if not decomposed:  # then the diagonal is not known, and one power step more is cheaper
        columns = pencil.apply(columns)[0]
    for _ in range(_PASSES):
        found = _Ritz.among(pencil, columns)
        if found.mu[0] < _SPREAD:
            return found.columns(slice(0))
        converged = int(
            np.argmin(np.append(found.residuals()[:wanted] <= _CONVERGED * _norm(found.mu), False))
        )
        if converged == wanted or (decomposed and found.mu[0] > _APART * found.mu[converged]):
            break
        # A step of Jacobi's method, where the diagonal is known: A in F is nearly diagonal.
        rest = found.image - found.Y * found.mu
        columns = found.Y + rest / gaps_to(pencil.diagonal, found.mu)
    return found.columns(slice(converged))
