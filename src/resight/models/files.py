"""Opening model files, also those of older versions: whole, or as much as a search needs.

Loading runs no code of the file: the manifest names classes from a fixed list. A search embeds by
what was saved, without the classes of learners: importing scikit-learn takes longer than a search.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from resight._version import __version__
from resight.errors import StoreError
from resight.kernels import Floats
from resight.learners._blocks import normalized
from resight.models.model import Describing, Model
from resight.registry import LEARNERS
from resight.saving import Get, SavableMixin, Tensors, decode, read, read_parts
from resight.tuning.mixture import embed as embed_mixture
from resight.validation import check_array, check_count

if TYPE_CHECKING:
    from resight.learners._base import MetricLearner

MAX_FEATURES = 10_000_000  # of one vector
CLASSES = {
    "BlockNormalizer": "resight.learners.normalizer",
    "Calibration": "resight.evaluation.calibration",
    "Kernel": "resight.kernels",
    "LandmarkStatistics": "resight.learners._landmark_sums",
    "Model": "resight.models.model",
    "Network": "resight.descriptors.network",
    "NystromMap": "resight.learners._landmarks",
}
"""Where each class that may stand in a model file lives, besides the learners."""
VERSIONS = {"Model": 1, "BlockNormalizer": 1, "KXQDA": 1, "AutoKXQDA": 2}
VERSIONS |= {"NystromMap": 1, "LandmarkStatistics": 1}
"""Versions of the states that a `SearchModel` understands."""


def load(path: str | Path) -> Model | MetricLearner:
    """Load a model folder written by ``save``, also of an older version.

    Raises
    ------
    StoreError
        If the folder is missing, not a model, damaged, or written by a newer version.
    """
    with refusing(path):
        return build(*read(Path(path)), path)


def build(
    state: Any, tensors: Tensors, path: object, *, finished: bool = True
) -> Model | MetricLearner:
    """Make the object of a state and arrays that were read at `path`; try out a finished one."""
    loaded: Model | MetricLearner = decode(state, tensors, partial(restore, path))
    if finished:
        _try_out(loaded)
    return loaded


def restore(path: object, name: str, version: int, state: dict[str, Any]) -> SavableMixin:
    """Make an object of the name of its class, its version and its state."""
    homes = CLASSES | {spec.class_name: spec.module for spec in LEARNERS.values()}
    if name not in homes:
        raise StoreError(
            f"model {path} contains a {name!r}, unknown to this version of resight. "
            "Update resight, or fit the model again"
        )
    cls: type[SavableMixin] = getattr(import_module(homes[name]), name)
    if check_count(version, "version", 0) > cls.state_version:
        raise StoreError(
            f"model {path} holds a {name} of version {version}; resight {__version__} reads "
            f"versions up to {cls.state_version}. Update resight, or fit again with this one"
        )
    if version < cls.state_version:
        state = cls.migrate(state, version)
    if version == 0:  # all attributes were written, also those that users had added
        state = {name: state[name] for name in cls.state_names() if name in state}
    return cls.from_state(state)


@contextmanager
def refusing(path: object) -> Iterator[None]:
    """Say of parts that do not fit together which model they are of."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:  # parts of the wrong kind, size or number fail in a hundred ways
        why = str(error) or type(error).__name__
        raise StoreError(
            f"model {path}: its parts do not fit together ({why}); fit again"
        ) from error


def _try_out(loaded: Any) -> None:
    """Refuse what cannot measure: one row of zeros must have a distance to itself."""
    learner = getattr(loaded, "learner", loaded)
    if learner is loaded and not hasattr(learner, "n_features_in_"):
        return  # not fitted, or nothing that measures
    width = getattr(learner, "n_features_in_", None)
    row = np.zeros((1, check_count(width, "n_features_in_", 1, MAX_FEATURES)))
    if not hasattr(loaded, "distances"):
        return  # a normaliser
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zeros have no names of columns
        distances = loaded.distances(row, row)
        check_array(distances, "distances", (1, 1))
        if getattr(loaded, "calibration", None) is not None:
            check_array(loaded.probability(distances), "probabilities", (1, 1))


class SearchModel(Describing):
    """A model made of its saved state; what else is asked of it is answered by the whole model."""

    def __init__(self, state: Any, tensors: Tensors, where: object) -> None:
        def part(name: str, version: int, values: dict[str, Any]) -> Any:
            if name in ("Kernel", "Calibration"):
                return restore(where, name, version, values)
            if VERSIONS.get(name) != version:
                raise AttributeError(f"a {name} of version {version}")
            return SimpleNamespace(class_name=name, **values)

        model = decode(state, tensors, part)
        if model.class_name != "Model" or not model.learner.class_name.endswith("KXQDA"):
            raise AttributeError(model.class_name)
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
            learner = self._learner
            if learner.class_name == "AutoKXQDA":
                return embed_mixture(learner, rows.astype(np.float64, copy=False))
            return learner.kernel_.rows(rows, learner.X_fit_) @ learner.coef_ - learner.offset_
        except (ValueError, TypeError, IndexError, AttributeError):
            return self.whole.embed(features)  # type: ignore[no-any-return]


def open_model(get: Get, where: object) -> Any:
    """Open the model whose files `get` reads by name, for searches; `where` is for errors."""
    with refusing(where):
        state, tensors = read_parts(get, where)
        try:
            return SearchModel(state, tensors, where)
        except AttributeError:  # other parts than those of VERSIONS, or no model at all
            return build(state, tensors, where)
