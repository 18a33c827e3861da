"""Kernel null Foley-Sammon transform."""

from __future__ import annotations

from resight.learners._base import Codes, Floats, KernelMetricLearner
from resight.learners._graphs import check_persons
from resight.learners.nfst import centred_kernel, null_coefficients


class KernelNFST(KernelMetricLearner):
    """Collapse each training person to one point in the feature space of a kernel.

    It does not use ``cameras``.

    Parameters
    ----------
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_components_)
        The embedding is the kernel row against the training set times ``coef_``. There is one
        column less than persons when the kernel matrix has full rank.

    Notes
    -----
    The steps of NFST in the basis B = (I - 1/N) U Lambda^-1/2 of the centred kernel matrix
    U Lambda U^T. An eigenvalue counts as zero by its ratio to the largest; the published code has
    an absolute 1e-12, which depends on the scale of the kernel.

    References
    ----------
    L. Zhang, T. Xiang, S. Gong, "Learning a discriminative null space for person
    re-identification", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KernelNFST
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> KernelNFST().fit(X, persons).distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        self.coef_ = null_coefficients(centred_kernel(K), persons)
