"""Landmarks: a few training sightings through which all others are seen (Nystrom features)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, eigh, lapack, qr, solve_triangular

from resight.errors import InputError
from resight.learners._base import Codes, Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pair_solvers import rough_directions
from resight.learners._pair_space import PairPencil, PairSpace
from resight.saving import SavableMixin

EXACT_LIMIT = 20_000
"""Sightings up to which k-XQDA is exact unless landmarks are asked for."""
DEFAULT_LANDMARKS = 1024
"""Features beyond that size."""
OVERSAMPLING = 3
"""Landmarks for each feature. On a drawn town of 12,936 sightings 1,024 features of 2,048, 3,072
and 4,096 landmarks gave a rank 1 of 72.9, 75.1 and 76.1 after 10, 14 and 18 s."""

LABELS_FROM = 64
"""Features from which landmarks' labels choose them; it was measured at 316 alone, so that small
models stay as they were."""

# Lambda of the k-XQDA that chooses features, for a kernel with k(x, x) = 1. On the drawn town of
# 4,000 sightings on which it and their share were chosen, 316 features gave a rank 1 of 76.9
# instead of 70.3 (exact: 76.7).
_RIDGE = 1e-4
# Eigenvalues below this part of the largest are round-off of the inner products.
_NOISE = {"float64": 1e-10, "float32": 1e-5}


@dataclass(frozen=True)
class NystromMap(SavableMixin):
    """From kernel values against the landmarks to features whose products approximate the kernel.

    With K_mm = U diag(s) U^T between the m landmarks, phi(x) = diag(s)^(-1/2) U^T k_m(x), so that
    phi(x)^T phi(z) = k_m(x)^T K_mm^-1 k_m(z): exact for landmarks, and everywhere when every
    training sighting is one. With q directions alone, phi is projected on them, in any basis.
    Features are given less the mean of the landmarks': what all of them share would cancel in
    differences and cost digits there.
    """

    state_version: ClassVar[int] = 1

    lift: Floats  # (m, q): U diag(s)^(-1/2) of eigenvalues above round-off, or C L^-T
    centre: Floats  # (q,): mean of the landmarks' features

    def features(self, kernel_rows: Floats) -> Floats:
        """Return phi(x) less the centre, (n, q), from kernel values (n, m)."""
        features: Floats = kernel_rows @ self.lift
        features -= self.centre
        return features


def landmark_map(
    K: Floats,
    persons: Codes | None,
    cameras: Codes | None,
    n_features: int,
    precision: str = "float64",
) -> tuple[NystromMap, Floats]:
    """Make the map to at most `n_features` from the landmarks' kernel matrix (m, m) and labels.

    A third of the features tell the landmarks' people apart, if that can be learned from them:
    from labels with pairs, with `LABELS_FROM` features and fewer than landmarks. See `nystrom_map`
    otherwise. The landmarks' own features (m, q) are returned too.
    """
    if persons is not None and LABELS_FROM <= n_features < len(K):
        who: Codes = np.unique(persons, return_inverse=True)[1]
        where = None if cameras is None else np.unique(cameras, return_inverse=True)[1]
        try:
            return _discriminating_map(K, CrossCameraPairs(who, where), n_features, precision)
        except (InputError, LinAlgError):  # no pairs, or no valid kernel
            pass
    return nystrom_map(K, n_features, precision)


def nystrom_map(
    K: Floats, n_features: int, precision: str = "float64"
) -> tuple[NystromMap, Floats]:
    """Make the map to the `n_features` along which the landmarks vary most, and their features."""
    m = len(K)
    if n_features < m:
        s, U = eigh(K, check_finite=False, subset_by_index=(m - n_features, m - 1))
    else:
        s, U = eigh(K, check_finite=False, driver="evd")
    return _scaled(U, U * s, s, precision)


def _discriminating_map(
    K: Floats, pairs: CrossCameraPairs, n_features: int, precision: str
) -> tuple[NystromMap, Floats]:
    """Take leading directions of k-XQDA between landmarks, a third of all, and common ones."""
    ridge = _RIDGE * float(np.abs(K.diagonal()).mean())
    wanted = max(1, n_features // 3)
    directions = rough_directions(PairPencil(PairSpace(K, pairs), ridge, 1, keep=False), wanted)
    size = (len(K), n_features - directions.shape[1])
    rounded = K.astype(np.float32)
    common = np.random.default_rng(0).normal(size=size).astype(np.float32)
    for _ in range(2):  # towards the directions along which all of them vary most
        common = qr(rounded @ common, mode="economic", overwrite_a=True, check_finite=False)[0]
    C = np.hstack([directions / np.linalg.norm(directions, axis=0), common])
    image = K @ C
    products = C.T @ image
    L, info = lapack.dpotrf(products, lower=1)
    largest = float(np.abs(products).sum(axis=0).max())
    if info == 0 and lapack.dpocon(L, largest, uplo="L")[0] > _NOISE[precision]:
        # Nothing is round-off, so C L^-T will do, and needs no eigenvectors.
        lift, features = (solve_triangular(L, M.T, lower=True).T for M in (C, image))
        return _centred(lift, features)
    s, V = eigh(products, check_finite=False, driver="evd")
    return _scaled(C @ V, image @ V, s, precision)


def _scaled(C: Floats, image: Floats, s: Floats, precision: str) -> tuple[NystromMap, Floats]:
    """Make the map from coefficients C and their image K C with C^T K C = diag(s), s ascending."""
    kept = s > _NOISE[precision] * s[-1]
    if not kept.any():
        raise InputError(
            "the kernel matrix of the landmarks has no positive eigenvalue, so it is not valid; "
            "use one of the named kernels, or a function that gives a positive matrix"
        )
    return _centred(*(M[:, kept] / np.sqrt(s[kept]) for M in (C, image)))


def _centred(lift: Floats, features: Floats) -> tuple[NystromMap, Floats]:
    lift, centre = np.ascontiguousarray(lift), features.mean(axis=0)  # as a loaded map lies
    features -= centre
    return NystromMap(lift, centre), features


def default_landmarks(n: int) -> int | None:
    """Tell how many landmarks to use for n sightings if nobody decided; None for an exact fit."""
    if n <= EXACT_LIMIT:
        return None
    warnings.warn(
        f"{n:,} training sightings are more than the {EXACT_LIMIT:,} up to which k-XQDA is "
        f"solved exactly, so landmarks={DEFAULT_LANDMARKS} is taken: another model, whose "
        "reg should be chosen for it. Give landmarks=a number to decide yourself, or "
        f"solver='dense' for an exact fit, which needs about {5 * 8 * n * n / 1e9:.0f} GB and "
        f"{(n / 12936) ** 3 * 7:.0f} minutes of a processor",
        UserWarning,
        stacklevel=5,
    )
    return DEFAULT_LANDMARKS


def landmark_rows(persons: Codes, cameras: Codes | None, n_features: int, seed: int) -> Codes:
    """Choose the landmarks from which `n_features` are made: 3 times as many, or all rows."""
    n = len(persons)
    if n_features > n:
        raise InputError(
            f"landmarks={n_features}, but there are only {n} training sightings; give at most "
            f"{n}, or landmarks=None for an exact fit"
        )
    return spread_rows(persons, cameras, min(OVERSAMPLING * n_features, n), seed)


def spread_rows(persons: Codes, cameras: Codes | None, n_rows: int, seed: int) -> Codes:
    """Choose rows spread over people and cameras, ascending.

    One sighting of every person first, cameras by turns; then one of every person in a second
    camera, and so on; further sightings of a person in the same camera last. Chance, drawn from
    `seed` and the order of rows, decides within these rules.
    """
    n = len(persons)
    order = np.random.default_rng(seed).permutation(n)
    who = persons[order]
    where = np.arange(n) if cameras is None else cameras[order]
    cell: Codes = np.unique(who * (int(where.max()) + 1) + where, return_inverse=True)[1]
    again = _turns(cell)  # 0 for the first sighting of a person in a camera, 1 for the second, ...
    first = np.flatnonzero(again == 0)
    camera_turn = np.empty(len(first), dtype=np.intp)  # of each cell: its person's 1st, 2nd, ...
    camera_turn[cell[first]] = _turns(who[first])
    turn = camera_turn[cell]
    stage = np.unique(again * (int(turn.max()) + 1) + turn, return_inverse=True)[1]
    by_turns = _turns(stage * (int(where.max()) + 1) + where)
    taken = np.lexsort((np.arange(n), by_turns, stage))[:n_rows]
    return np.sort(order[taken])


def _turns(codes: Codes) -> Codes:
    """Return for each element how many equal ones stand before it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    sizes = np.diff(starts, append=len(codes))
    turns = np.empty(len(codes), dtype=np.intp)
    turns[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    return turns
