"""Identity regression space: ridge regression to codes of the training persons."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from resight.errors import InputError
from resight.kernels import row_squares
from resight.learners._base import Codes, Floats, GrowingLearner, NewPeople
from resight.learners._graphs import check_persons
from resight.learners._parameters import Positive


class IRS(GrowingLearner):
    """Regress each sighting to a code of its person; people are added exactly and quickly.

    It does not use ``cameras``.

    Parameters
    ----------
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`; ``"linear"`` is the linear method.
    reg : float, default=0.1
        Ridge, as a fraction of the mean of the kernel matrix's diagonal.

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_persons)
        The kernel row against the training set times ``coef_`` is the regressed code; the
        embedding is that code with unit length.
    factor_ : ndarray of shape (n_train, n_train)
        Lower Cholesky factor of K + lambda I: what `add_people` extends.
    ridge_ : float
        lambda.
    squares_ : ndarray of shape (n_train,) or None
        Squared norms of the training rows, which `add_people` need not read again for them.

    Notes
    -----
    P minimises |X P - Y|^2 + lambda |P|^2, so that P = (X^T X + lambda I)^-1 X^T Y; with a kernel
    P = Phi^T (K + lambda I)^-1 Y. Row i of Y has 1 / sqrt(n_k) at the sighting's person k, who has
    n_k sightings, and 0 elsewhere: of the paper's codes the one that goes back to Fisher's
    criterion; with as many sightings of each person it is a multiple of one-hot codes.

    New people have codes of their own, so Y grows by columns that are 0 for the old rows. The
    system grows by a border B, whose Schur complement gives the new solution from the old one in
    O(N^2) for each new sighting, without approximation.

    Departures. lambda is relative, because the scale of a kernel is arbitrary; it and the
    kernel's bandwidth stay those of the first fit when people are added. There is no intercept:
    features are centred by the normaliser. How the paper compares codes could not be checked:
    angles are used here, which on synthetic cameras found more people than Euclidean distances,
    because a confident code is longer than one of a doubtful sighting.

    References
    ----------
    H. Wang, X. Zhu, S. Gong, T. Xiang, "Person re-identification in identity regression space",
    IJCV 126, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import IRS
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> learner = IRS().fit(X[persons < 15], persons[persons < 15])
    >>> learner.add_people(X[persons >= 15], persons[persons >= 15]).n_components_
    20
    """

    state_version = 1
    affine = False
    learned = "factor_ ridge_ squares_"

    reg: Positive = 0.1

    def add_people(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> IRS:
        """Add people to those learned from before: the same as one fit to all of them.

        Kernel bandwidth and ridge stay those of the first call.

        Parameters
        ----------
        X, y, cameras : as in `fit`
            All sightings of each new person. People who were learned from before are refused.
        """
        return self._grow(X, y, cameras) if hasattr(self, "persons_") else self.fit(X, y, cameras)

    @property
    def n_sightings(self) -> int:
        """How many sightings it has learned from."""
        return len(self.coef_)

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        super()._fit(X, persons, cameras)
        self.squares_ = None if self.X_fit_ is None else row_squares(X)

    def _rows(self, X: Floats) -> Floats:
        return self.kernel_.rows(X, self.X_fit_, self.squares_)

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        self.ridge_ = self.reg * float(K.diagonal().mean())
        K.flat[:: len(K) + 1] += self.ridge_
        try:
            self.factor_ = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise InputError(
                f"reg={self.reg:g} is too small for this kernel, whose matrix is not positive "
                "definite; give a larger reg, such as 0.1"
            ) from None
        self.coef_ = cho_solve((self.factor_, True), identity_codes(persons), check_finite=False)

    def _learn_more(self, new: NewPeople) -> None:
        if self.X_fit_ is None or self.squares_ is None:
            raise InputError(
                "people cannot be added to kernel='precomputed', whose rows are kernel values of "
                "the first people alone; fit again on the larger matrix"
            )
        X = new.X
        n, m = len(self.coef_), len(X)
        border = self._rows(X).T  # B, (N, m)
        own = self.kernel_.rows(X, X)
        own.flat[:: m + 1] += self.ridge_
        half = solve_triangular(self.factor_, border, lower=True, check_finite=False)
        inverse = solve_triangular(self.factor_, half, lower=True, trans="T", check_finite=False)
        corner = cholesky(own - half.T @ half, lower=True)  # of the Schur complement
        wanted = np.hstack([-border.T @ self.coef_, identity_codes(new.persons)])
        below = cho_solve((corner, True), wanted)  # (m, c + new)
        coef = np.zeros((n + m, below.shape[1]))
        coef[:n, : self.coef_.shape[1]] = self.coef_
        coef[:n] -= inverse @ below
        coef[n:] = below
        factor = np.zeros((n + m, n + m))
        factor[:n, :n], factor[n:, :n], factor[n:, n:] = self.factor_, half.T, corner
        # Codes in the order of persons_, as one fit to all of them would have it.
        self.coef_ = coef[:, np.argsort(np.concatenate([self.persons_, new.people]))]
        self.factor_ = factor
        self.X_fit_ = np.concatenate([self.X_fit_, X])
        self.squares_ = np.concatenate([self.squares_, row_squares(X)])
        self.n_components_ = coef.shape[1]

    def _embed(self, X: Floats) -> Floats:
        codes = super()._embed(X)
        lengths = np.linalg.norm(codes, axis=1, keepdims=True)
        return np.divide(codes, lengths, out=np.zeros_like(codes), where=lengths > 0.0)


def identity_codes(persons: Codes) -> Floats:
    """Return Y: 1 / sqrt(n_k) at the person k of each sighting, (N, n_persons)."""
    counts = np.bincount(persons)
    codes = np.zeros((len(persons), len(counts)))
    codes[np.arange(len(persons)), persons] = 1.0 / np.sqrt(counts[persons])
    return codes
