"""The pencil of k-XQDA between Nystrom features, from statistics alone."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, eigh

from resight.errors import InputError
from resight.learners._base import Floats
from resight.learners._landmark_sums import LandmarkStatistics
from resight.learners._solvers import leading_pencil


class LandmarkPencil:
    """Sigma_D v = mu (Sigma_S + regulariser) v; regularisers share its matrices.

    `centre` (q,) was taken off the features.
    With features as rows of G and K replaced by G G^T, a direction theta of k-XQDA acts on
    features as v = G^T theta. Its penalty lambda theta^T theta is lambda v^T (G^T G)^-1 v, and
    lambda theta^T K theta is lambda v^T v. The inverse is never formed: with G^T G = R R^T and
    v = R u the first penalty is lambda u^T u. When all training sightings are landmarks this is
    k-XQDA itself.
    """

    def __init__(self, statistics: LandmarkStatistics, centre: Floats) -> None:
        self.statistics = statistics
        self._similar, self._dissimilar = statistics.covariances()
        self._moment = statistics.second_moment(centre)

    def solve(self, reg: float, reg_form: str) -> tuple[Floats, Floats]:
        """Return the eigenvalues above 1 (at least one), largest first, and directions (q, b)."""
        if reg_form == "kernel":
            mu, V = _leading(self._similar, self._dissimilar, reg, reg_form)
        else:
            R, similar, dissimilar = self._turned
            absolute = reg
            if reg_form == "relative":  # tr(Lambda_S) / N, and Lambda_S has the trace of R^T S R
                absolute *= float(np.trace(similar)) / self.statistics.n_sightings
            mu, U = _leading(similar, dissimilar, absolute, reg_form)
            V = R @ U
        kept = max(1, int((mu > 1.0).sum()))
        return mu[:kept], V[:, :kept]

    @cached_property
    def _turned(self) -> tuple[Floats, Floats, Floats]:
        """R, R^T Sigma_S R and R^T Sigma_D R."""
        s, U = eigh(self._moment, check_finite=False, driver="evd")
        R = U * np.sqrt(np.maximum(s, 0.0))
        return R, _between(R, self._similar), _between(R, self._dissimilar)


def _between(R: Floats, M: Floats) -> Floats:
    turned: Floats = R.T @ M @ R
    return np.asfortranarray((turned + turned.T) / 2)


def _leading(
    similar: Floats, dissimilar: Floats, ridge: float, reg_form: str
) -> tuple[Floats, Floats]:
    A, B = dissimilar.copy(order="F"), similar.copy(order="F")
    B.flat[:: len(B) + 1] += ridge
    try:
        return leading_pencil(A, B, len(B))
    except LinAlgError:
        raise InputError(
            f"the regulariser ({ridge:.3g}, reg_form={reg_form!r}) is too small for the scale of "
            f"this kernel: the matrix of similar pairs (trace {np.trace(similar):.3g}) is "
            "numerically singular. Use reg_form='relative' with reg between 1e-6 and 1e-1, a "
            "larger reg, or fewer landmarks"
        ) from None
