"""A model as searches use it: descriptors, kernel values times coefficients, calibration.

All of it is computed from what was saved, without the classes of learners: importing scikit-learn
takes longer than a search. What else is asked of it is answered by the whole model, which is made
of the same state on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight._files import digest_of
from resight.descriptors import descriptor
from resight.descriptors._base import Joined
from resight.descriptors.describing import extract
from resight.errors import InputError
from resight.kernels import Floats
from resight.learners._blocks import normalized
from resight.models.files import build, refusing, restore
from resight.saving import decode, read_parts
from resight.tuning.mixture import embed as embed_mixture

if TYPE_CHECKING:
    from resight.evaluation.calibration import Calibration

VERSIONS = {"Model": 1, "BlockNormalizer": 1, "KXQDA": 1, "AutoKXQDA": 2}
VERSIONS |= {"NystromMap": 1, "LandmarkStatistics": 1}
"""Versions of the states that are understood here; of all others the whole model is made."""


class Describing:
    """What a model does before and after its learner: it describes images, it knows odds."""

    descriptors: tuple[Any, ...]  # names and networks
    mirror: bool
    calibration: Calibration | None
    own_width: int  # length of a user's own vectors, where there are no descriptors

    def describe(self, images: Sequence[Path | str | NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Compute the descriptors of images or image files, shape (n, n_features)."""
        if not self.descriptors:
            raise InputError(
                "this model was fitted on your own vectors, so it cannot describe images; "
                "give it vectors of the same kind (--features)"
            )
        return extract(self.descriptor, images).features

    def probability(self, distances: ArrayLike) -> Floats | None:
        """Return the probability that two sightings show one person; None if not calibrated."""
        return None if self.calibration is None else self.calibration.probability(distances)

    @property
    def descriptor(self) -> Joined:
        """Its descriptors as one: what a worker needs, without a learner of many megabytes."""
        return Joined(tuple(descriptor(name, mirror=self.mirror) for name in self.descriptors))

    @property
    def networks(self) -> tuple[Any, ...]:
        """Those of its descriptors that are networks."""
        return tuple(one for one in self.descriptors if not isinstance(one, str))

    @property
    def descriptor_fingerprint(self) -> str:
        """Tells apart features that must not be mixed; of own vectors only the length is known."""
        if not self.descriptors:
            return digest_of("resight.vectors", str(self.n_features))
        return self.descriptor.fingerprint

    @property
    def n_features(self) -> int:
        """Length of the vectors that it takes."""
        return self.descriptor.n_features if self.descriptors else self.own_width


class _OtherModelError(Exception):
    """A model of other parts than those that are understood here."""


class SearchModel(Describing):
    """A model made of its saved state; see `open_model`."""

    def __init__(self, state: Any, tensors: dict[str, np.ndarray], where: object) -> None:
        def part(name: str, version: int, values: dict[str, Any]) -> Any:
            if name in ("Kernel", "Calibration"):
                return restore(where, name, version, values)
            if VERSIONS.get(name) != version:
                raise _OtherModelError
            return SimpleNamespace(class_name=name, **values)

        model = decode(state, tensors, part)
        if model.class_name != "Model" or model.learner.class_name not in _EMBEDDINGS:
            raise _OtherModelError
        self.descriptors, self.mirror = model.descriptors, model.mirror
        self.calibration = model.calibration
        self.own_width = int(model.learner.n_features_in_)
        self._normalizer, self._learner = model.normalize or None, model.learner
        self._build = partial(build, state, tensors, where)

    @cached_property
    def whole(self) -> Any:
        """The model with its learner."""
        return self._build()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.whole, name)

    def embed(self, features: ArrayLike) -> Floats:
        """Embed features, shape (n, n_components); `Model.embed` gives the same."""
        rows = np.asarray(features)
        if rows.dtype not in (np.float32, np.float64) or not np.isfinite(rows).all():
            return self.whole.embed(features)  # type: ignore[no-any-return]  # which says why not
        try:
            if self._normalizer is not None:
                rows = normalized(rows, self._normalizer.mean_, self._normalizer.blocks)
            return _EMBEDDINGS[self._learner.class_name](self._learner, rows)
        except (ValueError, TypeError, IndexError, AttributeError):
            return self.whole.embed(features)  # type: ignore[no-any-return]


def _embed_kernel(learner: Any, rows: NDArray[Any]) -> Floats:
    """Embed as `KXQDA` does."""
    values: Floats = learner.kernel_.rows(rows, learner.X_fit_)
    return np.asarray(values @ learner.coef_ - learner.offset_)


def _embed_mixture(learner: Any, rows: NDArray[Any]) -> Floats:
    """Embed as `AutoKXQDA` does, which takes its input in float64."""
    return embed_mixture(learner, rows.astype(np.float64, copy=False))


_EMBEDDINGS: dict[str, Callable[[Any, NDArray[Any]], Floats]] = {
    "KXQDA": _embed_kernel,
    "AutoKXQDA": _embed_mixture,
}


def open_model(get: Callable[[str], bytes | memoryview], where: object) -> Any:
    """Open the model whose files `get` reads by name, for searches; `where` is for errors."""
    with refusing(where):
        state, tensors = read_parts(get, where)
        try:
            return SearchModel(state, tensors, where)
        except (_OtherModelError, AttributeError):  # also what is no model at all
            return build(state, tensors, where)
