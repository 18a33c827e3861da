"""Learners that minimise a smooth function of a square matrix by L-BFGS."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from resight._progress import progress
from resight.learners._base import Floats
from resight.learners._subspace import PCAMetricLearner

#: Steps and gradient differences that L-BFGS remembers.
MEMORY = 20


class DescendingLearner(PCAMetricLearner):
    """A learner that descends to its metric and says how that ended."""

    learned = "objective_ n_iter_ gradient_norm_ converged_"

    max_iter: Any
    tol: Any

    def _descend(
        self, objective: Callable[[Floats], tuple[float, Floats]], n_dimensions: int
    ) -> Floats:
        """Minimise ``objective(L) -> (value, gradient)`` over square matrices from the identity.

        It stops when no entry of the gradient exceeds ``tol``, and warns with `ConvergenceWarning`
        when ``max_iter`` iterations or the precision of float64 end it earlier. The line search
        accepts only steps that lower the objective. Returns L (d, d).
        """
        title, tol, max_iter = type(self).__name__, self.tol, self.max_iter
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

            x, norm = np.eye(n_dimensions).ravel(), np.inf
            # Two values that rounding makes equal end L-BFGS; without its memory it may go on.
            for _ in range(2):
                left = max_iter - max(0, len(values) - 1)
                if norm <= tol or left == 0:
                    break
                options: dict[str, Any] = {"maxiter": left, "maxfun": 20 * left}
                options |= {"gtol": tol, "ftol": 0.0, "maxcor": MEMORY}
                end: Any = minimize(  # type: ignore[call-overload]
                    flat, x, jac=True, method="L-BFGS-B", callback=note, options=options
                )
                x, norm = end.x, float(np.abs(end.jac).max())
        self.objective_, self.n_iter_ = np.array(values), len(values) - 1
        self.gradient_norm_, self.converged_ = norm, norm <= tol
        if not self.converged_:
            warnings.warn(
                f"{title} stopped after {self.n_iter_} iterations with a gradient of {norm:.2g}, "
                f"above tol={tol:g}; raise max_iter (now {max_iter}) or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        L: Floats = x.reshape(shape)
        return L
