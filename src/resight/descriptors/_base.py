"""What a descriptor is: the contract that every descriptor of this package fulfils."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from resight.descriptors.describing import Extraction
from resight.descriptors.published import PlainDescriptor
from resight.descriptors.streaming import extract, stream


class Descriptor(TransformerMixin, BaseEstimator, PlainDescriptor):
    """Turn images into vectors, without learning anything.

    A descriptor implements `describe_once` and says its `name`, `blocks` and `version`, and the
    `size`, height and width, to which it brings images.
    Every `Descriptor` is a scikit-learn transformer whose samples are images: uint8 RGB arrays,
    paths or binary streams, also mixed.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"mirror": ["boolean"]}

    def fit(self, X: Any = None, y: Any = None) -> Descriptor:
        """Check the parameters; there is nothing to learn."""
        self._validate_params()
        return self

    def transform(self, X: Sequence[Any] | NDArray[np.uint8]) -> NDArray[np.float32]:
        """Describe images or paths, (n_images, n_features) float32; the first bad one raises."""
        return self.extract(X, on_error="raise").features

    def extract(
        self,
        sources: Sequence[Any] | NDArray[np.uint8],
        on_error: str = "raise",
        n_jobs: int | None = None,
    ) -> Extraction:
        """Describe many images or paths on all cores.

        Parameters
        ----------
        sources : sequence of paths, arrays or binary streams
        on_error : {"raise", "collect"}
            "collect" goes on after a bad image and reports it in `failures`.
        n_jobs : int, optional
            Threads; all cores if not given. The result does not depend on it.

        Returns
        -------
        Extraction
            `features` float32, `failures`, and `kept`: which image each row belongs to.
        """
        self._validate_params()
        return extract(self, sources, on_error, n_jobs)

    def stream(
        self, sources: Sequence[Any], on_error: str = "raise", n_jobs: int | None = None
    ) -> Iterator[Extraction]:
        """Describe images one chunk after the other, in order, in memory that does not grow.

        For features that are written somewhere as they come; parameters as in `extract`.
        """
        self._validate_params()
        return stream(self, sources, on_error, n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that `transform` gives: channel, strip and bin."""
        return np.array(self.feature_names(), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
