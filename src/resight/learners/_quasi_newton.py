"""Minimise a smooth function of a square matrix: L-BFGS that goes down and says how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from resight._progress import progress
from resight.learners._base import Floats

#: Steps and gradient differences that L-BFGS remembers.
MEMORY = 20


class Descending(Protocol):
    """A learner that descends: when it stops, and what it keeps of the way."""

    tol: float
    max_iter: int
    objective_: Floats  # (n_iter_ + 1,): at the start and after each iteration; never increases
    n_iter_: int
    gradient_norm_: float  # largest absolute entry of the gradient at the end
    converged_: bool  # whether that is at most the tolerance


def descend(
    learner: Descending, objective: Callable[[Floats], tuple[float, Floats]], n_dimensions: int
) -> Floats:
    """Minimise ``objective(L) -> (value, gradient)`` over square matrices from the identity.

    It stops when no entry of the gradient exceeds ``tol``, and warns with `ConvergenceWarning`
    when ``max_iter`` iterations or the precision of float64 end it earlier. The line search
    accepts only steps that lower the objective. Returns L (d, d).
    """
    title, tol, max_iter = type(learner).__name__, learner.tol, learner.max_iter
    shape = (n_dimensions, n_dimensions)
    values: list[float] = []

    def flat(x: Floats) -> tuple[float, Floats]:
        value, gradient = objective(x.reshape(shape))
        if not values:
            values.append(value)
        return value, gradient.ravel()

    with progress(title, max_iter) as advance:

        def note(intermediate_result: OptimizeResult) -> None:
            values.append(float(intermediate_result.fun))
            advance(1)

        options: dict[str, Any] = {"maxiter": max_iter, "maxfun": 20 * max_iter}
        options |= {"gtol": tol, "ftol": 0.0, "maxcor": MEMORY}
        start = np.eye(n_dimensions).ravel()
        end: Any = minimize(  # type: ignore[call-overload]
            flat, start, jac=True, method="L-BFGS-B", callback=note, options=options
        )
    norm = float(np.abs(end.jac).max())
    if norm > tol:
        warnings.warn(
            f"{title} stopped after {len(values) - 1} iterations with a gradient of {norm:.2g}, "
            f"above tol={tol:g}; raise max_iter (now {max_iter}) or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    learner.objective_, learner.n_iter_ = np.array(values), len(values) - 1
    learner.gradient_norm_, learner.converged_ = norm, norm <= tol
    L: Floats = end.x.reshape(shape)
    return L
