"""The pencil of k-XQDA for one kernel matrix (Algorithm 1 of the paper)."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError

from resight.errors import InputError
from resight.learners._base import Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._null_space import solve_in_null_space
from resight.learners._pencil import covariances, similar_factor
from resight.learners._solvers import leading_pencil


class KernelPencil:
    """The pencil of k-XQDA for one training kernel (N, N); regularisers share its matrices."""

    def __init__(self, K: Floats, pairs: CrossCameraPairs) -> None:
        self.K, self.pairs = K, pairs
        self.bound = max(1, pairs.max_components())

    @cached_property
    def _matrices(self) -> tuple[Floats, Floats]:
        return covariances(self.K, self.pairs)  # Lambda_S, Lambda_D (Theorems 1 and 2)

    def solve(
        self, reg: float, reg_form: str, solver: str = "auto", *, keep: bool = False
    ) -> tuple[Floats, Floats, str]:
        """Solve for all eigenvalues above 1 (at least one); parameters as in `KXQDA`.

        Returns mu (b,), largest first, Theta (N, b), orthonormal under the regularised Lambda_S,
        and the path taken, "null" or "dense". To `keep` the matrices for another regulariser
        costs a copy.
        """
        if solver == "auto" and reg_form != "kernel":
            absolute = reg * self._mean_eigenvalue() if reg_form == "relative" else reg
            found = solve_in_null_space(self.K, self.pairs, absolute, self.bound)
            if found is not None:
                return (*found, "null")
        mu, Theta = self._solve_dense(reg, reg_form, keep)
        kept = max(1, int((mu > 1.0).sum()))
        return mu[:kept], Theta[:, :kept], "dense"

    def _solve_dense(self, reg: float, reg_form: str, keep: bool) -> tuple[Floats, Floats]:
        lifts = self._lifts() if reg_form == "kernel" else (0.0,)
        for lift in lifts:
            similar, dissimilar = self._taken(keep or lift != lifts[-1])
            _regularise(similar, self.K, reg, reg_form)  # Algorithm 1, line 3
            similar.flat[:: len(similar) + 1] += reg * lift
            try:
                return leading_pencil(dissimilar, similar, self.bound)
            except LinAlgError:
                continue
        raise InputError(
            f"reg={reg:g} with reg_form={reg_form!r} is too small for the scale of this kernel "
            f"(largest value {np.abs(self.K).max():.3g}): the matrix of similar pairs is "
            "numerically singular. Use reg_form='relative' with reg between 1e-6 and 1e-1, or a "
            "larger reg"
        )

    def _lifts(self) -> tuple[float, float]:
        """Return what may be added to K so that it is positive: nothing, or float32 round-off.

        Inner products computed in float32 leave a kernel with slightly negative eigenvalues.
        """
        n = len(self.K)
        noise = np.finfo(np.float32).eps * np.sqrt(n) * float(np.abs(self.K.diagonal()).max())
        return 0.0, 4.0 * noise

    def _taken(self, keep: bool) -> tuple[Floats, Floats]:
        """Lambda_S and Lambda_D to be overwritten; copies where they are needed again."""
        similar, dissimilar = self._matrices
        if keep:
            return similar.copy(order="F"), dissimilar.copy(order="F")
        del self._matrices
        return similar, dissimilar

    def _mean_eigenvalue(self) -> float:
        """Return tr(Lambda_S) / N."""
        factor = similar_factor(self.K, self.pairs)
        return float(np.einsum("ij,ij", factor, factor)) / (self.pairs.n_similar * len(self.K))


def _regularise(similar: Floats, K: Floats, reg: float, reg_form: str) -> None:
    """Add the regulariser in place; say so when it drowns in round-off."""
    n = len(K)
    scale = float(similar.diagonal().sum())
    if reg_form == "kernel":
        similar += reg * K
        # Where K is singular (a linear kernel of centred rows) both forms vanish; a ridge at the
        # level of round-off keeps these directions, whose eigenvalue is 0, out of the way.
        similar.flat[:: n + 1] += n * np.finfo(np.float64).eps * float(similar.diagonal().sum())
        return
    absolute = reg * scale / n if reg_form == "relative" else reg
    if absolute < np.finfo(np.float64).eps * scale:
        warnings.warn(
            f"reg={reg:g} is below the round-off of this kernel's matrix of similar pairs (trace "
            f"{scale:.3g}), so results are noise; use reg_form='relative' with reg between 1e-6 "
            "and 1e-1",
            RuntimeWarning,
            stacklevel=2,
        )
    similar.flat[:: n + 1] += absolute
