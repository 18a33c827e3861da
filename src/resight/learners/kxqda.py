"""k-XQDA: Kernel Cross-View Quadratic Discriminant Analysis, the paper's method."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.utils._param_validation import StrOptions

from resight.errors import InputError
from resight.learners import _parameters as allowed
from resight.learners._base import Codes, Floats
from resight.learners._landmark_fit import LandmarkFit
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._null_space import solve_in_null_space
from resight.learners._pencil import covariances, direction_weights, similar_factor
from resight.learners._solvers import leading_pencil


class KXQDA(LandmarkFit):
    """Learn a cross-view subspace and metric at once, in the space of a kernel.

    It uses `cameras`: similar and dissimilar pairs are pairs across cameras.

    Parameters
    ----------
    kernel, gamma, width, degree, coef0
        The kernel; see `resight.kernels.Kernel`. The default is the paper authors' RBF with
        the mean squared distance of the training rows as bandwidth.
    reg : float, default 1e-7
        Regulariser lambda of the similar pairs' matrix (Algorithm 1, line 3).
    reg_form : {"identity", "kernel", "relative"}, default "identity"
        What is added: lambda I (the paper), lambda K (a ridge in feature space) or
        lambda tr(Lambda_S)/N I (does not depend on the scale of the kernel).
    n_components : int, optional
        Keep at most this many directions; by default all with an eigenvalue above 1.
    solver : {"auto", "dense"}, default "auto"
        "auto" takes the fast null-space path where a check of residuals shows that its
        distances are within 1e-6 of "dense", and "dense" everywhere else.
    precision : {"float64", "float32"}, default "float64"
        Arithmetic of the inner products of descriptors; everything after them is float64.
    landmarks : int, optional
        See sightings through this many features, made of kernel values against four times as
        many training sightings, spread over people and cameras: time grows as N instead of N^3,
        `add_people` adds people. It is another model, whose `reg` should be chosen for it. None,
        the default, is exact up to 20,000 sightings; beyond that ``landmarks=1024`` is taken
        with a warning, unless ``solver="dense"`` insists.
    seed : int, default 0
        Draws the landmarks; nothing else is left to chance.

    Attributes
    ----------
    coef_ : array (n_train, n_components_), or (len(landmarks_), n_components_)
        The embedding of x is k(x)^T coef_ - offset_, with k(x) the kernel values against
        training rows, or against landmarks.
    offset_ : array (n_components_,)
        Mean of the training embeddings: kernels with a large constant part would otherwise put
        all sightings far from the origin, where float32 copies lose their digits.
    eigenvalues_ : array (n_components_,)
        Ratios of dissimilar to similar variance along each direction, largest first.
    n_components_ : int
    solver_ : str
        The path taken: "null", "dense" or "landmarks".
    landmarks_ : int array (4 landmarks,)
        Rows of the training set that are landmarks, if there are any.

    References
    ----------
    T M Feroz Ali and S. Chaudhuri, "Cross-View Kernel Similarity Metric Learning Using Pairwise
    Constraints for Person Re-identification".

    Notes
    -----
    The pencil Lambda_D theta = mu (Lambda_S + lambda I) theta is solved in its symmetric form.
    With Theta^T (Lambda_S + lambda I) Theta = I the metric of Theorem 3 is
    Gamma = I - diag(1/mu), positive semi-definite where mu > 1: the projection of the paper is
    never needed, and distances are squared Euclidean in e(x) = diag(sqrt(1 - 1/mu)) Theta^T k(x).

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KXQDA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(30), 2)
    >>> cameras = np.repeat(["A", "B"], 30)
    >>> X = rng.normal(size=(30, 50))[persons] + 0.5 * rng.normal(size=(60, 50))
    >>> learner = KXQDA().fit(X, persons, cameras)
    >>> learner.distances(X[:30], X[30:]).shape
    (30, 30)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **allowed.KERNEL,
        "reg": [allowed.POSITIVE],
        "reg_form": [StrOptions({"identity", "kernel", "relative"})],
        "n_components": [None, allowed.COUNT],
        "solver": [StrOptions({"auto", "dense"})],
        "precision": [StrOptions({"float64", "float32"})],
        "landmarks": [None, allowed.COUNT],
        "seed": [allowed.SEED],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "mean",
        width: float = 1.0,
        degree: int = 2,
        coef0: float = 1.0,
        reg: float = 1e-7,
        reg_form: str = "identity",
        n_components: int | None = None,
        solver: str = "auto",
        precision: str = "float64",
        landmarks: int | None = None,
        seed: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.width = width
        self.degree = degree
        self.coef0 = coef0
        self.reg = reg
        self.reg_form = reg_form
        self.n_components = n_components
        self.solver = solver
        self.precision = precision
        self.landmarks = landmarks
        self.seed = seed

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        n_landmarks = self._wanted_landmarks(len(X))
        if n_landmarks is None:
            super()._fit(X, persons, cameras)
        else:
            self._fit_landmarks(X, persons, cameras, n_landmarks)

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        pencil = KernelPencil(K, CrossCameraPairs(persons, cameras))
        mu, Theta, self.solver_ = pencil.solve(self.reg, self.reg_form, self.solver)
        if self.n_components is not None:
            mu, Theta = mu[: self.n_components], Theta[:, : self.n_components]
        self.eigenvalues_ = mu
        self.coef_ = Theta * direction_weights(mu)
        self.offset_ = K.mean(axis=0) @ self.coef_
        self.n_components_ = len(mu)

    def _embed(self, X: Floats) -> Floats:
        return super()._embed(X) - self.offset_


class KernelPencil:
    """The pencil of k-XQDA for one kernel matrix; regularisers share its two matrices.

    Parameters
    ----------
    K : array (N, N)
        Training kernel.
    pairs : CrossCameraPairs
    """

    def __init__(self, K: Floats, pairs: CrossCameraPairs) -> None:
        self.K = K
        self.pairs = pairs
        self.bound = max(1, pairs.max_components())

    @cached_property
    def _matrices(self) -> tuple[Floats, Floats]:
        return covariances(self.K, self.pairs)  # Lambda_S, Lambda_D (Theorems 1 and 2)

    def solve(
        self, reg: float, reg_form: str, solver: str = "auto", *, keep: bool = False
    ) -> tuple[Floats, Floats, str]:
        """Solve for all eigenvalues above 1 (at least one).

        Parameters
        ----------
        reg, reg_form, solver : as in `KXQDA`.
        keep : bool
            Keep the two matrices for another regulariser, at the cost of a copy.

        Returns
        -------
        mu : array (b,)
            Eigenvalues, largest first.
        Theta : array (N, b)
            Orthonormal under the regularised Lambda_S.
        path : "null" or "dense"
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
