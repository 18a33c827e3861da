"""What a metric learner is: the contract that every learner of this package fulfils."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from typing_extensions import Self, dataclass_transform

from resight._files import digest_of
from resight.errors import InputError
from resight.kernels import Floats, Kernel
from resight.learners._parameters import Count, KernelName, NotNegative, Positive, constraints_of
from resight.learners._scoring import cross_camera_rank1
from resight.saving import SavableMixin

Codes = NDArray[np.intp]


@dataclass_transform(kw_only_default=True, eq_default=False)
class MetricLearner(
    SavableMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Learn a distance between sightings from persons and cameras.

    A learner implements `_fit`, which stores its learned attributes, and either `_embed` (the
    metric is the squared Euclidean distance of embeddings) or `_distances`. Its parameters are
    fields of a dataclass, which every subclass becomes; their types (see `_parameters`) say what
    is checked.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    # Pipeline.score routes a sample_weight (None) that its last step must know by name.
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": None}

    _dtypes: ClassVar[tuple[type, ...]] = (np.float64,)
    learns: ClassVar[bool] = True  # otherwise distances are those of the features as they are
    turned: ClassVar[bool] = False  # whether it may see sightings in turned coordinates
    affine: ClassVar[bool] = True  # whether embeddings are affine in features or kernel values
    learned = "n_features_in_ feature_names_in_ persons_ training_fingerprint_ n_components_"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        cls._parameter_constraints = {**cls._parameter_constraints, **constraints_of(cls)}

    def fit(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> Self:
        """Learn from labelled sightings.

        Parameters
        ----------
        X : array-like of shape (n_sightings, n_features)
            Descriptors; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_sightings,)
            Persons: any labels that can be compared.
        cameras : array-like of shape (n_sightings,), optional
            The camera of each sighting. Without it every sighting counts as its own camera.
        """
        self._validate_params()
        fresh = copy.copy(self)
        fresh.__dict__ = {k: v for k, v in vars(self).items() if not k.endswith("_")}
        rows, labels = validate_data(fresh, X, y, dtype=self._dtypes, ensure_min_samples=2)
        if len(rows) > 1 and all(np.array_equal(row, rows[0]) for row in rows[1:]):
            raise InputError(
                f"all {len(rows)} training sightings have the same features; "
                "a metric needs sightings that differ"
            )
        fresh.persons_, codes = encode(labels, "persons")
        camera_codes = encode_cameras(cameras, len(codes))
        fresh.training_fingerprint_ = fingerprint_of(rows, codes, camera_codes)
        fresh._fit(rows, codes, camera_codes)
        lay_out_as_saved(fresh)
        # Only a fit that came to its end changes this object.
        self.__dict__ = fresh.__dict__
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Embed sightings: their learned distance is plain squared Euclidean there."""
        return self._embed(self._checked(X))

    def distances(self, Q: ArrayLike, G: ArrayLike) -> Floats:
        """Return the learned squared distances, shape (n_queries, n_gallery)."""
        return self._distances(self._checked(Q), self._checked(G))

    def score(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None = None) -> float:
        """Rank 1 across cameras, mean of both directions (a fraction)."""
        persons = np.asarray(y)
        return cross_camera_rank1(
            self.distances(X, X), persons, encode_cameras(cameras, len(persons))
        )

    def _checked(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return validate_data(self, X, dtype=self._dtypes, reset=False)

    @abstractmethod
    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        """Learn from validated data; persons and cameras are codes 0, 1, 2, ..."""

    def _embed(self, X: Floats) -> Floats:
        raise NotImplementedError

    def _distances(self, Q: Floats, G: Floats) -> Floats:
        return squared_euclidean(self._embed(Q), self._embed(G))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class KernelMetricLearner(MetricLearner):
    """A learner that sees sightings only through a kernel.

    It implements `_fit_kernel`, which stores ``coef_`` (n_train, n_components): the embedding of
    a sighting is its kernel row against the training set times ``coef_``. The training rows are
    kept as ``X_fit_`` without a copy: leave the array that was given to `fit` unchanged.
    """

    # float32 descriptors are taken as they are: inner products convert some columns at a time.
    _dtypes: ClassVar[tuple[type, ...]] = (np.float64, np.float32)
    learned = "kernel_ X_fit_ coef_"

    kernel: KernelName | Callable[..., Any] = "rbf"
    gamma: Literal["mean"] | Positive = "mean"
    width: Positive = 1.0
    degree: Count = 2
    coef0: NotNegative = 1.0

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        self._fit_kernel(self._training_kernel(X), persons, cameras)
        self.n_components_ = self.coef_.shape[1]

    def unfitted_kernel(self) -> Kernel:
        """Return the kernel that the parameters describe, without a bandwidth yet."""
        own = self.get_params()
        return Kernel(**{one.name: own[one.name] for one in fields(Kernel) if one.name in own})

    def _training_kernel(self, X: Floats) -> Floats:
        """Learn the kernel's bandwidth, keep the training rows, return their matrix (N, N)."""
        self.kernel_ = self.unfitted_kernel()
        self.X_fit_ = None if self.kernel == "precomputed" else X
        return self.kernel_.fit_matrix(X)

    @abstractmethod
    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        """Learn ``coef_`` from the training kernel matrix."""

    def _rows(self, X: Floats) -> Floats:
        return self.kernel_.rows(X, self.X_fit_)

    def _embed(self, X: Floats) -> Floats:
        return self._rows(X) @ self.coef_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "chi2-rbf")
        return tags


class NewPeople(NamedTuple):
    """Sightings of people who are added: rows, names of people and cameras, codes of the rows."""

    X: Floats
    people: NDArray[Any]
    persons: Codes
    names: NDArray[Any] | None
    cameras: Codes | None


class GrowingLearner(KernelMetricLearner):
    """A kernel learner whose `_learn_more` adds people to what it has learned."""

    def _grow(self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None) -> Self:
        """Add all sightings of new people, or leave this object as it is."""
        self._validate_params()
        rows, labels = validate_data(self, X, y, dtype=self._dtypes, reset=False)
        distinct, persons = encode(labels, "persons")
        self.refuse_known(distinct, without_cameras=cameras is None)
        codes = encode_cameras(cameras, len(rows))
        names = None if cameras is None else np.unique(np.asarray(cameras))
        fresh = copy.copy(self)
        fresh._learn_more(NewPeople(rows, distinct, persons, names, codes))
        fresh.persons_ = np.union1d(self.persons_, distinct)
        fresh.training_fingerprint_ = digest_of(
            self.training_fingerprint_, fingerprint_of(rows, persons, codes)
        )
        lay_out_as_saved(fresh)
        self.__dict__ = fresh.__dict__
        return self

    def refuse_known(self, persons: NDArray[Any], *, without_cameras: bool) -> None:
        """Refuse people who cannot be added to those learned from before."""
        known = persons[np.isin(persons, self.persons_)]
        if len(known):
            raise InputError(
                f"{len(known)} people were learned from before, such as {known[0]!s}. Add all "
                "sightings of a person at once, or fit again on everything"
            )

    @property
    @abstractmethod
    def n_sightings(self) -> int:
        """How many sightings it has learned from."""

    @abstractmethod
    def _learn_more(self, new: NewPeople) -> None:
        """Learn from the sightings of new people."""


def encode_cameras(cameras: ArrayLike | None, n_sightings: int) -> Codes | None:
    """Check cameras against the number of sightings and code them 0, 1, 2, ..."""
    if cameras is None:
        return None
    given = np.asarray(cameras)
    if given.shape != (n_sightings,):
        raise InputError(
            f"cameras has shape {given.shape}, but there are {n_sightings} sightings; "
            "give one camera for each row"
        )
    return encode(given, "cameras")[1]


def encode(labels: NDArray[Any], what: str) -> tuple[NDArray[Any], Codes]:
    """Return the distinct labels, sorted, and for each label its place among them."""
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise InputError(
            f"{what} are a mixture of {kinds}, which have no order; give all as text or all as "
            "numbers, and leave out sightings whose label is missing"
        ) from None
    if distinct.dtype.kind == "f" and np.isnan(distinct).any():
        raise InputError(f"{what} hold NaN; leave out sightings whose label is missing")
    return distinct, codes


def squared_euclidean(A: Floats, B: Floats) -> Floats:
    """Squared Euclidean distances between rows, never negative, shape (len(A), len(B))."""
    centre = B.sum(axis=0) / max(1, len(B))  # far from the origin the three terms would cancel
    A, B = A - centre, B - centre
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1)[None, :]
    squares -= 2.0 * (A @ B.T)
    return np.maximum(squares, 0.0, out=squares)


def group_means(rows: Floats, codes: Codes) -> Floats:
    """Mean of the rows of each group 0, 1, 2, ..., shape (n_groups, n_columns)."""
    counts = np.bincount(codes)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, codes, rows)
    return sums / counts[:, None]


def fingerprint_of(X: Floats, persons: Codes, cameras: Codes | None) -> str:
    """Tell training sets apart at the cost of one pass: shape, labels and weighted row sums."""
    weights = np.sin(np.arange(1, X.shape[1] + 1)).astype(X.dtype)  # so that order counts
    seen_by = b"" if cameras is None else cameras.tobytes()
    return digest_of(repr(X.shape), (X @ weights).tobytes(), persons.tobytes(), seen_by)


def lay_out_as_saved(learner: MetricLearner) -> None:
    """Store learned arrays row by row, as files do.

    BLAS takes another path for columns, so that a loaded learner would differ in the last digits.
    """
    for name, value in vars(learner).items():
        if name.endswith("_") and isinstance(value, (np.ndarray, list)):
            setattr(learner, name, _by_rows(value))


def _by_rows(value: Any) -> Any:
    if isinstance(value, list):
        return [_by_rows(item) for item in value]
    return np.asanyarray(value, order="C") if isinstance(value, np.ndarray) else value
