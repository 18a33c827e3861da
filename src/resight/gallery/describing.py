"""What a worker does for a gallery: turn a batch of stored images into descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.gallery import crops
from resight.gallery.engines.base import Floats32


class Description(NamedTuple):
    """Descriptors of a batch.

    Attributes
    ----------
    features : float32 array (n, n_features)
        One row for each image, also for those that could not be described.
    failures : dict of int to str
        Place in the batch -> why it could not be described.
    """

    features: Floats32
    failures: dict[int, str]


def describer(model: Any) -> Any:
    """Return what a worker needs of a model: its descriptors, without a learner of many MB."""
    from resight.learners.euclidean import Euclidean
    from resight.models.model import Model

    if isinstance(model, Model):
        return Model(model.descriptors, Euclidean(), mirror=model.mirror, normalize=False)
    return model


def describe_batch(
    model: Any, fingerprint: str, version: str, images: Sequence[bytes]
) -> Description:
    """Describe the images of a batch, given as the bytes that are stored (runs in a worker).

    Parameters
    ----------
    fingerprint, version : str
        Of the descriptors and of resight where the work was ordered; others are refused.

    Notes
    -----
    An image that cannot be described is reported and the others go on. Any other error raises: it
    may pass, so the batch is tried again.
    """
    from threadpoolctl import threadpool_limits

    from resight.workers.dask_cluster import refuse_other_code

    refuse_other_code(version, model.descriptor_fingerprint, fingerprint)
    with threadpool_limits(1):  # one thread a worker: more of them only fight for the cores
        pictures = [crops.decode(content) for content in images]
        failures: dict[int, str] = {}
        try:
            features = np.asarray(model.describe(pictures), np.float32)
        except InputError:
            features, failures = _one_by_one(model, pictures)
    for place in np.flatnonzero(~np.isfinite(features).all(axis=1)).tolist():
        failures.setdefault(place, "its descriptor contains values that are not finite")
    return Description(features, failures)


def take_given(features: Floats32) -> Description:
    """Use descriptors that were computed before."""
    return Description(features, {})


def _one_by_one(model: Any, pictures: list[NDArray[np.uint8]]) -> tuple[Floats32, dict[int, str]]:
    rows: dict[int, Floats32] = {}
    failures = {}
    for place, picture in enumerate(pictures):
        try:
            rows[place] = np.asarray(model.describe([picture]), np.float32)[0]
        except InputError as error:
            failures[place] = str(error)
    width = max((len(row) for row in rows.values()), default=0)
    features = np.full((len(pictures), width), np.nan, np.float32)
    for place, row in rows.items():
        features[place] = row
    return features, failures
