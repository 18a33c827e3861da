"""Directions in which the sightings of each person do not differ at all."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from resight.learners._base import Codes, Floats


def null_directions(Z: Floats, persons: Codes) -> Floats:
    """Orthonormal null space of the scatter within persons.

    Parameters
    ----------
    Z : ndarray of shape (n_sightings, n_dimensions)
        Coordinates in an orthonormal basis of the span of the centred training sightings, so that
        no direction is null because nothing varies in it.
    persons : int array of shape (n_sightings,)

    Returns
    -------
    ndarray of shape (n_dimensions, n_components)
        The null space; when it is empty, the one direction of least scatter, with a warning.
    """
    members = np.bincount(persons)
    sums = np.zeros((len(members), Z.shape[1]))
    np.add.at(sums, persons, Z)
    H = Z - (sums / members[:, None])[persons]  # (N, p): (I - L) Z
    values, vectors = scipy.linalg.eigh(H.T @ H, check_finite=False)  # T = H H^T of the paper
    tolerance = len(values) * np.spacing(values[-1])
    null: Floats = vectors[:, values <= tolerance]
    if null.shape[1]:
        return null
    warnings.warn(
        f"the null space is empty: {Z.shape[1]} dimensions cannot hold {len(Z)} sightings of "
        f"{len(members)} persons with each person in one point. The single direction of least "
        f"scatter is used instead; use KernelNFST, a descriptor of more than "
        f"{len(Z) - len(members)} dimensions, or fewer sightings of each person",
        UserWarning,
        stacklevel=5,
    )
    return vectors[:, :1]
