"""The pencil of k-XQDA for one kernel matrix (Algorithm 1 of the paper)."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError

from resight.errors import InputError
from resight.learners._base import Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pair_solvers import directions
from resight.learners._pair_space import PairPencil, PairSpace
from resight.learners._solvers import leading_pencil

PAIRS_FROM = 1000
"""Sightings from which the space of the pairs is faster than the dense path; four times as many
where lambda I asks for the square of the kernel matrix and for more directions than persons."""

LOSES_DIGITS = 1e-10
"""Below this part of the trace of Lambda_S the dense path itself loses six digits to round-off:
there is nothing to be equal to."""

_NOTICEABLE = 1e-3  # share of the ridge in a direction: it changes distances by as much
_EPS = float(np.finfo(np.float64).eps)


class KernelPencil:
    """The pencil of k-XQDA for one training kernel (N, N); regularisers share its matrices."""

    def __init__(self, K: Floats, pairs: CrossCameraPairs) -> None:
        self.K, self.pairs = K, pairs

    def of_kernel(self, K: Floats) -> KernelPencil:
        """Return the pencil of another kernel; what the labels allow is found once for all."""
        other = KernelPencil(K, self.pairs)
        other._bound = self._bound
        return other

    @cached_property
    def _matrices(self) -> tuple[Floats, Floats]:
        return self.pairs.covariances(self.K)  # Lambda_S, Lambda_D (Theorems 1 and 2)

    @cached_property
    def _pair_space(self) -> PairSpace:
        return PairSpace(self.K, self.pairs)

    def solve(
        self,
        reg: float,
        reg_form: str,
        solver: str = "auto",
        n_components: int | None = None,
        *,
        keep: bool = False,
    ) -> tuple[Floats, Floats, str]:
        """Solve for the eigenvalues above 1 (at least one); parameters as in `KXQDA`.

        Returns mu (b,), largest first, Theta (N, b), orthonormal under the regularised Lambda_S,
        and the path taken, "pairs", "krylov" or "dense". To `keep` the matrices for another
        regulariser costs a copy.
        """
        found = None
        if solver == "auto" and len(self.K) >= PAIRS_FROM:
            found = self._solve_in_pair_space(reg, reg_form, n_components, keep)
        mu, Theta, path = found or (*self._solve_dense(reg, reg_form, keep), "dense")
        kept = min(n_components or len(mu), max(1, int((mu[: self._bound] > 1.0).sum())))
        return mu[:kept], Theta[:, :kept], path

    @cached_property
    def _bound(self) -> int:
        """Directions that the labels allow: others above 1 are round-off."""
        try:
            return self._pair_space.bound
        except LinAlgError:
            return len(self.K)

    def _solve_in_pair_space(
        self, reg: float, reg_form: str, n_components: int | None, keep: bool
    ) -> tuple[Floats, Floats, str] | None:
        power = 1 if reg_form == "kernel" else 2
        few = power == 2 and n_components is None and len(self.K) < 4 * PAIRS_FROM
        try:
            space = self._pair_space
            if few and not space.bound < space.n_null <= len(self.K) / 3:
                return None
            if power == 2:
                reg *= space.mean_eigenvalue if reg_form == "relative" else 1.0
                if reg < LOSES_DIGITS * len(self.K) * space.mean_eigenvalue:
                    space.forget()
                    return None
            return directions(PairPencil(space, reg, power, keep=keep), n_components, at_hand=few)
        except LinAlgError:
            return None

    def _solve_dense(self, reg: float, reg_form: str, keep: bool) -> tuple[Floats, Floats]:
        for lift in self._lifts() if reg_form == "kernel" else (0.0,):
            similar, dissimilar = self._matrices  # to be overwritten
            if keep:
                similar, dissimilar = similar.copy(order="F"), dissimilar.copy(order="F")
            else:
                del self._matrices
            ridge = _regularise(similar, self.K, reg, reg_form)  # Algorithm 1, line 3
            similar.flat[:: len(similar) + 1] += reg * lift
            try:
                mu, Theta = leading_pencil(dissimilar, similar, len(similar), above=1.0)
            except LinAlgError:
                continue
            # Directions have length 1 under all that was added up: this is the ridge's share.
            if reg_form == "kernel" and ridge * (Theta**2).sum(axis=0).max() > _NOTICEABLE:
                _warn_of_noise(reg, ridge / (len(self.K) * _EPS))
            return mu, Theta
        raise InputError(
            f"reg={reg:g} with reg_form={reg_form!r} is too small for the scale of this kernel "
            f"(largest value {np.abs(self.K).max():.3g}): the matrix of similar pairs is "
            "numerically singular. Use reg_form='relative' with reg between 1e-6 and 1e-1, or a "
            "larger reg; a kernel of your own must have no negative eigenvalues"
        )

    def _lifts(self) -> tuple[float, float]:
        """Return what may be added to K so that it is positive: nothing, or float32 round-off.

        Inner products computed in float32 leave a kernel with slightly negative eigenvalues.
        """
        n = len(self.K)
        noise = np.finfo(np.float32).eps * np.sqrt(n) * float(np.abs(self.K.diagonal()).max())
        return 0.0, 4.0 * noise


def _regularise(similar: Floats, K: Floats, reg: float, reg_form: str) -> float:
    """Add the regulariser in place; return the ridge that is added to the diagonal."""
    n = len(K)
    if reg_form == "kernel":
        similar += reg * K
        # Where K is singular (a linear kernel of centred rows) both forms vanish; a ridge at the
        # level of round-off keeps these directions, whose eigenvalue is 0, out of the way.
        # With a lambda below 1e-4 it shows: 4e-5 of the distances at 1e-6 and 2,000 sightings.
        ridge = n * _EPS * float(np.trace(similar))
    else:
        trace = float(np.trace(similar))
        ridge = reg * trace / n if reg_form == "relative" else reg
        if ridge < _EPS * trace:
            _warn_of_noise(reg, trace)
    similar.flat[:: n + 1] += ridge
    return ridge


def _warn_of_noise(reg: float, trace: float) -> None:
    warnings.warn(
        f"reg={reg:g} is near or below the round-off of this kernel's matrix of similar pairs "
        f"(trace {trace:.3g}), so results are partly or wholly noise; use reg_form='relative' "
        "with reg between 1e-6 and 1e-1",
        RuntimeWarning,
        stacklevel=3,
    )
