"""Fitting k-XQDA through landmarks: at once, or people added later."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from resight._files import digest_of
from resight.errors import InputError
from resight.learners._base import Codes, Floats, KernelMetricLearner, encode, fingerprint_of
from resight.learners._landmark_pencil import LandmarkPencil
from resight.learners._landmark_sums import ChunkSums, LandmarkStatistics, pair_weights, total
from resight.learners._landmarks import NystromMap, landmark_rows, nystrom_map
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pencil import direction_weights

EXACT_LIMIT = 20_000
"""Sightings up to which k-XQDA is exact unless landmarks are asked for."""
DEFAULT_LANDMARKS = 1024
"""Features beyond that size."""
CHUNK_ROWS = 2048  # seen at once: kernel rows of 67 MB for 1,024 features of 4,096 landmarks


class LandmarkFit(KernelMetricLearner):
    """The part of `KXQDA` that learns from sums over Nystrom features.

    Learned attributes besides those of `KXQDA`:

    landmarks_ : int array (m,)
        Rows of the training set that are landmarks.
    lift_, centre_ : arrays (m, q), (q,)
        See `NystromMap`.
    statistics_ : dict
        Fields of `LandmarkStatistics`: all that adding people needs to know of the others.
    """

    landmarks: int | None
    seed: int
    solver: str
    reg: float
    reg_form: str
    n_components: int | None

    def fit(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> LandmarkFit:
        """Learn from labelled sightings; parameters as in `MetricLearner.fit`."""
        super().fit(X, y, cameras)
        if cameras is not None and self.solver_ == "landmarks":
            # People who are added later name their cameras, so codes are not enough.
            self.statistics_["cameras"] = np.unique(np.asarray(cameras))
        return self

    @available_if(lambda self: self.landmarks is not None)
    def add_people(
        self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None
    ) -> LandmarkFit:
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
            self.fit(X, y, cameras)
            return self
        self._validate_params()
        rows: Floats
        rows, labels = validate_data(self, X, y, dtype=self._dtypes, reset=False)
        distinct, persons = encode(labels, "persons")
        self._refuse_known(distinct, cameras is None)
        names, codes = (None, None) if cameras is None else _camera_codes(cameras, len(rows))
        fresh = copy.copy(self)
        sums = self._add_up(rows, persons, codes, pair_weights(persons, codes))
        fresh._learn(LandmarkStatistics(**self.statistics_) + sums.finish(names))
        fresh.persons_ = np.union1d(self.persons_, distinct)
        fresh.training_fingerprint_ = digest_of(
            self.training_fingerprint_, fingerprint_of(rows, persons, codes)
        )
        self.__dict__ = fresh.__dict__
        return self

    def _wanted_landmarks(self, n: int) -> int | None:
        """Tell how many landmarks to use for n sightings; None for an exact fit."""
        if self.landmarks is not None or self.solver == "dense" or n <= EXACT_LIMIT:
            return self.landmarks
        warnings.warn(
            f"{n:,} training sightings are more than the {EXACT_LIMIT:,} up to which k-XQDA is "
            f"solved exactly, so landmarks={DEFAULT_LANDMARKS} is taken: another model, whose "
            "reg should be chosen for it. Give landmarks=a number to decide yourself, or "
            f"solver='dense' for an exact fit, which needs about {5 * 8 * n * n / 1e9:.0f} GB and "
            f"{(n / 12936) ** 3 * 7:.0f} minutes of a processor",
            UserWarning,
            stacklevel=4,
        )
        return DEFAULT_LANDMARKS

    def _fit_landmarks(
        self, X: Floats, persons: Codes, cameras: Codes | None, n_features: int
    ) -> None:
        CrossCameraPairs(persons, cameras)  # refuses labels that nothing can be learned from
        rows = landmark_rows(persons, cameras, n_features, self.seed)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise InputError(
                f"a precomputed kernel must be square (n_train, n_train) at fit; given {X.shape}"
            )
        chosen = X[rows][:, rows] if self.kernel == "precomputed" else X[rows]
        self._place(chosen, rows, n_features)
        sums = self._add_up(X, persons, cameras, pair_weights(persons, cameras))
        names = None if cameras is None else np.arange(int(cameras.max()) + 1)
        self._learn(sums.finish(names))

    def _place(self, chosen: Floats, rows: Codes, n_features: int) -> None:
        """Take sightings, which are these rows of the training set, as landmarks.

        The kernel's bandwidth and the map to `n_features` are learned from them.
        """
        K = self._training_kernel(chosen)
        self.landmarks_ = rows
        self.lift_, self.centre_ = nystrom_map(K, n_features, self.precision)

    def _features(self, X: Floats) -> Floats:
        values = X[:, self.landmarks_] if self.kernel == "precomputed" else self._rows(X)
        return NystromMap(self.lift_, self.centre_).features(values)

    def _add_up(
        self, X: Floats, persons: Codes, cameras: Codes | None, weights: Floats
    ) -> ChunkSums:
        def chunk(start: int) -> ChunkSums:
            part = slice(start, start + CHUNK_ROWS)
            views = None if cameras is None else cameras[part]
            return ChunkSums.of_rows(self._features(X[part]), persons[part], views, weights[part])

        sums: ChunkSums = total(chunk(start) for start in range(0, len(X), CHUNK_ROWS))
        return sums

    def _learn(self, statistics: LandmarkStatistics) -> None:
        """Solve the pencil of these statistics and keep them."""
        mu, V = LandmarkPencil(statistics, self.centre_).solve(self.reg, self.reg_form)
        if self.n_components is not None:
            mu, V = mu[: self.n_components], V[:, : self.n_components]
        V = V * direction_weights(mu)
        coef = self.lift_ @ V  # (m, b)
        if self.kernel == "precomputed":  # kernel rows hold every training sighting
            whole = np.zeros((self.n_features_in_, coef.shape[1]))
            whole[self.landmarks_] = coef
            coef = whole
        self.coef_ = coef
        self.offset_ = (self.centre_ + statistics.mean()) @ V
        self.eigenvalues_ = mu
        self.n_components_ = len(mu)
        self.solver_ = "landmarks"
        self.statistics_ = {
            name: value for name, value in vars(statistics).items() if not name.startswith("_")
        }

    def _refuse_known(self, persons: NDArray[Any], without_cameras: bool) -> None:
        known = persons[np.isin(persons, self.persons_)]
        if len(known):
            raise InputError(
                f"{len(known)} people were learned from before, such as {known[0]!s}. Add all "
                "sightings of a person at once, or fit again on everything"
            )
        if (self.statistics_["cameras"] is None) != without_cameras:
            raise InputError(
                "cameras must be given for all people or for none; the people learned from before "
                f"came {'without' if self.statistics_['cameras'] is None else 'with'} cameras"
            )


def _camera_codes(cameras: ArrayLike, n_sightings: int) -> tuple[NDArray[Any], Codes]:
    given = np.asarray(cameras)
    if given.shape != (n_sightings,):
        raise InputError(
            f"cameras has shape {given.shape}, but there are {n_sightings} sightings; "
            "give one camera for each row"
        )
    return encode(given, "cameras")
