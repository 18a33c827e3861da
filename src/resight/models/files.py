"""Opening model files, also those of older versions.

Loading runs no code of the file: the manifest names classes from a fixed list.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from resight._version import __version__
from resight.errors import StoreError
from resight.registry import LEARNERS
from resight.saving import SavableMixin, decode, read
from resight.validation import check_array, check_count

if TYPE_CHECKING:
    from resight.learners._base import MetricLearner
    from resight.models.model import Model

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


def load(path: str | Path, *, finished: bool = True) -> Model | MetricLearner:
    """Load a model folder written by ``save``, also of an older version.

    A model that is not `finished`, such as one whose landmarks are being summed up, is not tried
    out.

    Raises
    ------
    StoreError
        If the folder is missing, not a model, damaged, or written by a newer version.
    """
    with refusing(path):
        return build(*read(Path(path)), path, finished=finished)


def build(
    state: Any, tensors: dict[str, np.ndarray], path: object, *, finished: bool = True
) -> Model | MetricLearner:
    """Make the object of a state and arrays that were read at `path`."""
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
