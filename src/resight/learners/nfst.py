"""Null Foley-Sammon transform, of descriptors and in the feature space of a kernel."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from resight.errors import InputError
from resight.learners._base import Codes, Floats, KernelMetricLearner, group_means
from resight.learners._graphs import check_persons
from resight.learners._subspace import LinearLearner, centred_products, lift, pca, round_off


class NFST(LinearLearner):
    """Collapse each training person to one point: the directions without within scatter.

    It does not use ``cameras``.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        Orthonormal null directions; the embedding is ``(X - mean_) @ components_``. There is one
        less than persons when the training sightings are independent.

    Notes
    -----
    V^T S_w V = 0 and V^T S_b V > 0: a null direction of the scatter within persons in the span of
    the centred training rows. It needs more features than sightings minus persons; otherwise
    the null space is empty, and the direction of least scatter is used with a warning, as the
    published code does silently. The span is found exactly, whatever the number of features.

    References
    ----------
    L. Zhang, T. Xiang, S. Gong, "Learning a discriminative null space for person
    re-identification", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import NFST
    >>> X = np.random.default_rng(0).normal(size=(6, 20))
    >>> E = NFST().fit(X, [1, 1, 2, 2, 3, 3]).transform(X)
    >>> E.shape, bool(abs(E[0] - E[1]).max() < 1e-12)
    ((6, 2), True)
    """

    state_version = 1

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        if X.shape[1] > X.shape[0]:
            mean = X.mean(axis=0, dtype=np.float64)
            self._keep(mean, lift(X, mean, null_coefficients(centred_products(X, mean), persons)))
        else:
            projection = pca(X, "full")
            self._keep(projection.mean, projection.basis @ null_directions(projection(X), persons))


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
    That of `NFST`.

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
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        self.coef_ = null_coefficients(centred, persons)


def null_directions(Z: Floats, persons: Codes) -> Floats:
    """Orthonormal null space (n_dimensions, n_components) of the scatter within persons.

    Z (n_sightings, n_dimensions) are coordinates in an orthonormal basis of the span of the centred
    training sightings, so that no direction is null because nothing varies in it. When the null
    space is empty, the one direction of least scatter is returned, with a warning.
    """
    means = group_means(Z, persons)
    H = Z - means[persons]  # (N, p): (I - L) Z
    values, vectors = scipy.linalg.eigh(H.T @ H, check_finite=False)  # T = H H^T of the paper
    null: Floats = vectors[:, values <= round_off(len(values)) * values[-1]]
    if null.shape[1]:
        return null
    warnings.warn(
        f"the null space is empty: {Z.shape[1]} dimensions cannot hold {len(Z)} sightings of "
        f"{len(means)} persons with each person in one point. The single direction of least "
        f"scatter is used instead; use KernelNFST, a descriptor of more than "
        f"{len(Z) - len(means)} dimensions, or fewer sightings of each person",
        UserWarning,
        stacklevel=2,
    )
    return vectors[:, :1]


def null_coefficients(K: Floats, persons: Codes) -> Floats:
    """Coefficients (N, n_components) of the null directions over training sightings.

    K are their centred inner products (the lower triangle counts), overwritten. With
    K = U Lambda U^T, B = (I - 1/N) U Lambda^-1/2 is an orthonormal basis of the span, in which the
    sightings have the coordinates U Lambda^1/2. The columns sum to 0, so that it does not matter
    whether new rows are centred.
    """
    values, U = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
    kept = values > round_off(len(K)) * max(values[-1], 0.0)
    if not kept.any():
        raise InputError(
            "the kernel does not tell any two training sightings apart; "
            "check the features, or give another gamma or width"
        )
    roots = np.sqrt(values[kept])
    U = U[:, kept]  # (N, p)
    return ((U - U.mean(axis=0)) / roots) @ null_directions(U * roots, persons)
