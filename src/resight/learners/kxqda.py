"""k-XQDA: Kernel Cross-View Quadratic Discriminant Analysis, the paper's method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from resight.errors import InputError
from resight.kernels import require_square
from resight.learners._base import Codes, Floats, GrowingLearner, NewPeople
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._landmark_sums import LandmarkPencil, LandmarkStatistics, add_up, pair_weights
from resight.learners._landmarks import NystromMap, default_landmarks, landmark_map, landmark_rows
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._parameters import Count, Positive, Precision, Seed
from resight.learners._solvers import direction_weights


class KXQDA(GrowingLearner):
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
        "auto" takes a fast path where a check of residuals shows that its distances are within
        1e-6 of "dense", and "dense" everywhere else.
    precision : {"float64", "float32"}, default "float64"
        Arithmetic of the inner products of descriptors.
    landmarks : int, optional
        See sightings through this many features, made of kernel values against three times as
        many training sightings, spread over people and cameras, to tell these apart: time grows
        as N instead of N^3, `add_people` adds people. It is another model, whose `reg` should be
        chosen for it. None, the default, is exact up to 20,000 sightings; beyond that
        ``landmarks=1024`` is taken with a warning, unless ``solver="dense"`` insists.
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
        The path taken: "pairs", "krylov", "dense" or "landmarks".
    landmarks_ : int array (3 landmarks,)
        Rows of the training set that are landmarks, if there are any.
    nystrom_, statistics_ : NystromMap, LandmarkStatistics
        With landmarks: the map to features, and the sums of these, to which `add_people` adds.

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

    state_version = 1
    learned = "offset_ eigenvalues_ solver_ landmarks_ nystrom_ statistics_"

    reg: Positive = 1e-7
    reg_form: Literal["identity", "kernel", "relative"] = "identity"
    n_components: Count | None = None
    solver: Literal["auto", "dense"] = "auto"
    precision: Precision = "float64"
    landmarks: Count | None = None
    seed: Seed = 0

    @classmethod
    def migrate(cls, state: dict[str, Any], version: int) -> dict[str, Any]:
        """Resight 0.1 wrote the fields of `nystrom_` and `statistics_` without their classes."""
        if version == 0 and "statistics_" in state:
            state["nystrom_"] = NystromMap(state["lift_"], state["centre_"])
            state["statistics_"] = LandmarkStatistics(**state["statistics_"])
        return state

    def fit(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> KXQDA:
        """Learn from labelled sightings; parameters as in `MetricLearner.fit`."""
        super().fit(X, y, cameras)
        if cameras is not None and self.solver_ == "landmarks":
            # People who are added later name their cameras, so codes are not enough.
            names = np.unique(np.asarray(cameras))
            self.statistics_: LandmarkStatistics = replace(self.statistics_, cameras=names)
        return self

    @available_if(lambda self: self.landmarks is not None)
    def add_people(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> KXQDA:
        """Add people to those learned from before, whose sightings are not needed again.

        Landmarks and kernel stay those of the first call, so begin with sightings that are
        typical: at least as many as there are landmarks. The result is that of one fit to all
        people with these landmarks.

        Parameters
        ----------
        X, y, cameras : as in `fit`
            All sightings of each new person. People who were learned from before are refused:
            how their old sightings count would change, and these are no longer known.
        """
        if not hasattr(self, "statistics_"):
            return self.fit(X, y, cameras)
        return self._grow(X, y, cameras)

    def _learn_more(self, new: NewPeople) -> None:
        labels = new.persons, new.cameras
        sums = add_up(
            lambda part: self.landmark_features(new.X[part]), *labels, pair_weights(*labels)
        )
        self.learn_from(self.statistics_ + sums.finish(new.names))

    @property
    def n_sightings(self) -> int:
        """How many sightings it has learned from, if that was through landmarks."""
        return int(self.statistics_.n_sightings)

    def refuse_known(self, persons: NDArray[Any], *, without_cameras: bool) -> None:
        """Refuse people who cannot be added to those learned from before."""
        super().refuse_known(persons, without_cameras=without_cameras)
        had_none = self.statistics_.cameras is None
        if had_none != without_cameras:
            raise InputError(
                "cameras must be given for all people or for none; the people learned from before "
                f"came {'without' if had_none else 'with'} cameras"
            )

    def wanted_landmarks(self, n: int) -> int | None:
        """Tell how many landmarks to use for n sightings; None for an exact fit."""
        if self.landmarks is not None or self.solver == "dense":
            return self.landmarks
        return default_landmarks(n)

    def place_landmarks(
        self,
        chosen: Floats,
        rows: Codes,
        n_features: int,
        persons: Codes | None = None,
        cameras: Codes | None = None,
    ) -> Floats:
        """Take sightings, which are these rows of the training set, as landmarks.

        The kernel's bandwidth and the map to `n_features` are learned from them and their labels.
        Returns their features.
        """
        self._validate_params()
        K = self._training_kernel(chosen)
        self.landmarks_ = rows
        self.nystrom_, features = landmark_map(K, persons, cameras, n_features, self.precision)
        return features

    def landmark_features(self, X: Floats) -> Floats:
        """Return the features of sightings through the landmarks, (n, q)."""
        values = X[:, self.landmarks_] if self.kernel == "precomputed" else self._rows(X)
        return self.nystrom_.features(values)

    def learn_from(self, statistics: LandmarkStatistics) -> None:
        """Learn the metric from sums over features, and keep them."""
        lift, centre = self.nystrom_.lift, self.nystrom_.centre
        mu, V = LandmarkPencil(statistics, centre).solve(self.reg, self.reg_form)
        mu, V = mu[: self.n_components], V[:, : self.n_components]
        V = V * direction_weights(mu)
        coef = lift @ V  # (m, b)
        self.offset_ = (centre + statistics.mean()) @ V
        if self.kernel == "precomputed":  # kernel rows hold every training sighting
            whole = np.zeros((self.n_features_in_, coef.shape[1]))
            whole[self.landmarks_] = coef
            coef = whole
        self.coef_ = coef
        self.eigenvalues_ = mu
        self.n_components_ = len(mu)
        self.solver_ = "landmarks"
        self.statistics_ = statistics

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        n_landmarks = self.wanted_landmarks(len(X))
        if n_landmarks is None:
            super()._fit(X, persons, cameras)
        else:
            self._fit_through_landmarks(X, persons, cameras, n_landmarks)

    def _fit_through_landmarks(
        self, X: Floats, persons: Codes, cameras: Codes | None, n_features: int
    ) -> None:
        CrossCameraPairs(persons, cameras)  # refuses labels that nothing can be learned from
        rows = landmark_rows(persons, cameras, n_features, self.seed)
        chosen = X[rows]
        if self.kernel == "precomputed":
            require_square(X)
            chosen = chosen[:, rows]
        views = None if cameras is None else cameras[rows]
        of_landmarks = self.place_landmarks(chosen, rows, n_features, persons[rows], views)
        place = np.full(len(X), -1)
        place[rows] = np.arange(len(rows))
        # A camera's rows together: sums over a chunk are then few products, and large ones.
        order = np.arange(len(X)) if cameras is None else np.argsort(cameras, kind="stable")

        def features(part: slice) -> Floats:  # those of landmarks are known already
            own = order[part]
            known = place[own] >= 0
            F = np.empty((len(own), of_landmarks.shape[1]))
            F[known] = of_landmarks[place[own[known]]]
            F[~known] = self.landmark_features(X[own[~known]])
            return F

        weights = pair_weights(persons, cameras)[order]
        views = None if cameras is None else cameras[order]
        sums = add_up(features, persons[order], views, weights)
        names = None if cameras is None else np.arange(int(cameras.max()) + 1)
        self.learn_from(sums.finish(names))

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        pencil = KernelPencil(K, CrossCameraPairs(persons, cameras))
        mu, Theta, self.solver_ = pencil.solve(
            self.reg, self.reg_form, self.solver, self.n_components
        )
        self.eigenvalues_ = mu
        self.coef_ = Theta * direction_weights(mu)
        self.offset_ = K.mean(axis=0) @ self.coef_

    def _embed(self, X: Floats) -> Floats:
        return super()._embed(X) - self.offset_
