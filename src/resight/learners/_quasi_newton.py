"""Minimise a smooth function of a square matrix: L-BFGS that goes down and says how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from resight._progress import progress
from resight.learners._base import Floats

#: Steps and gradient differences that L-BFGS remembers.
MEMORY = 20


@dataclass(frozen=True)
class Descent:
    """The end of a descent and the way there."""

    L: Floats  # (d, d): where it ended
    objective: Floats  # (n_iter + 1,): at the start and after each iteration; never increases
    gradient_norm: float  # largest absolute entry of the gradient at the end
    converged: bool  # whether that is at most the tolerance

    @property
    def n_iter(self) -> int:
        """Iterations done."""
        return len(self.objective) - 1


def descend(
    objective: Callable[[Floats], tuple[float, Floats]],
    n_dimensions: int,
    *,
    title: str,
    tol: float,
    max_iter: int,
) -> Descent:
    """Minimise ``objective(L) -> (value, gradient)`` over square matrices from the identity.

    It stops when no entry of the gradient exceeds ``tol``, and warns with `ConvergenceWarning`
    when ``max_iter`` iterations or the precision of float64 end it earlier. The line search
    accepts only steps that lower the objective.
    """
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
    return Descent(end.x.reshape(shape), np.array(values), norm, norm <= tol)
