"""k-KISSME: KISSME in the feature space of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg

from resight.learners._base import Codes, Floats, KernelMetricLearner
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pairs import ListedPairs, PairLearner, positive_root
from resight.learners._parameters import Positive
from resight.learners._subspace import round_off


@dataclass(kw_only=True, eq=False, repr=False)
class KernelKISSME(KernelMetricLearner, PairLearner):
    """Compare two Gaussians of differences, similar and dissimilar, in the space of a kernel.

    It uses ``cameras``: pairs are pairs across cameras.

    Parameters
    ----------
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`.
    reg : float, default=1e-3
        The ridge epsilon of both covariances in feature space.
    projection : {"coefficients", "metric"}, default="coefficients"
        What is made positive semi-definite: the matrix C between kernel rows, as the published
        code does, or the metric Phi^T C Phi itself, which is KISSME's definition. They differ
        most where the kernel matrix has no full rank (few features, linear or polynomial kernel).

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_components_)
        The embedding is the kernel row against the training set times ``coef_``.

    Notes
    -----
    With H the Laplacian of n pairs, Woodbury's identity gives
    (Sigma + eps I)^-1 = I / eps - Phi^T T Phi with T = H (I + K H / (n eps))^-1 / (n eps^2), so
    the metric is C = T_D - T_S between kernel rows. All pairs across cameras count, where the
    published code draws dissimilar pairs at random; `fit_pairs` takes pairs that you have drawn.

    References
    ----------
    B. Nguyen, B. De Baets, "Kernel distance metric learning using pairwise constraints for person
    re-identification", IEEE TIP 28(2), 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KernelKISSME
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> learner = KernelKISSME().fit(X, persons, cameras=np.repeat([0, 1], 20))
    >>> learner.distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1

    reg: Positive = 1e-3
    projection: Literal["coefficients", "metric"] = "coefficients"

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        self._learn(K, CrossCameraPairs(persons, cameras))

    def _fit_to_pairs(self, X: Floats, pairs: CrossCameraPairs | ListedPairs) -> None:
        self._learn(self._training_kernel(X), pairs)

    def _learn(self, K: Floats, pairs: CrossCameraPairs | ListedPairs) -> None:
        identity = np.eye(len(K))
        H_S, H_D = pairs.mean_similar(identity), pairs.mean_dissimilar(identity)  # H / n
        C = _woodbury(H_D, K, self.reg) - _woodbury(H_S, K, self.reg)
        C = (C + C.T) / 2
        if self.projection == "coefficients":
            self.coef_ = positive_root(C)
        else:
            # K = R R^T; the metric between coordinates R is R^T C R, kernel rows k are R x.
            values, U = scipy.linalg.eigh(K, check_finite=False)
            kept = values > round_off(len(K)) * values[-1]
            roots, U = np.sqrt(values[kept]), U[:, kept]
            R = U * roots  # (N, rank)
            self.coef_ = (U / roots) @ positive_root(R.T @ C @ R)
        self.n_components_ = self.coef_.shape[1]


def _woodbury(H: Floats, K: Floats, reg: float) -> Floats:
    """Return T = H (I + K H / eps)^-1 / eps^2 for the mean Laplacian H of some pairs."""
    system = H @ K / reg  # (N, N); T = (I + H K / eps)^-1 H / eps^2 is the same matrix
    system[np.diag_indices_from(system)] += 1.0
    solved: Floats = scipy.linalg.solve(system, H, overwrite_a=True, check_finite=False)
    return solved / reg**2
