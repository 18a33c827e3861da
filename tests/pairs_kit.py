"""Drawn sightings with all sorts of counts, and pairs given one by one, for tests of learners."""

from __future__ import annotations

import numpy as np


class ListedPairs:
    """Drawn pairs of rows, as published codes have them, in place of all pairs across cameras."""

    def __init__(self, n_sightings, similar, dissimilar):
        identity = np.eye(n_sightings)
        similar, dissimilar = np.asarray(similar), np.asarray(dissimilar)
        self.similar, self.dissimilar = (
            identity[pairs[:, 0]] - identity[pairs[:, 1]] for pairs in (similar, dissimilar)
        )
        self.n_similar = len(similar)
        self.n_independent = np.linalg.matrix_rank(self.similar)

    def mean_similar(self, M):
        return self.similar.T @ (self.similar @ M) / len(self.similar)

    def mean_dissimilar(self, M):
        return self.dissimilar.T @ (self.dissimilar @ M) / len(self.dissimilar)


def fit_listed(learner, X, similar, dissimilar):
    """Fit KISSME or its kernel form to drawn pairs."""
    X = np.asarray(X, dtype=np.float64)
    learner.n_features_in_ = X.shape[1]
    pairs = ListedPairs(len(X), similar, dissimilar)
    if hasattr(learner, "kernel"):
        learner._learn(learner._training_kernel(X), pairs)
    else:
        learner._learn(X, pairs)
    return learner


def sightings(rng, counts, n_features, noise, unit):
    """Persons around centres in shifted cameras; test rows of other persons."""
    who, where = np.indices(counts.shape)
    persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
    shifts = 0.5 * rng.normal(size=(counts.shape[1], n_features))
    X = rng.normal(size=(len(counts), n_features))[persons] + shifts[cameras]
    X += noise * rng.normal(size=X.shape)
    T = rng.normal(size=(30, n_features)) * np.sqrt(1 + noise**2)
    if unit:
        T = (T - X.mean(axis=0)) / np.linalg.norm(T - X.mean(axis=0), axis=1, keepdims=True)
        X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=1, keepdims=True)
    return X, persons, cameras, T


def draw_counts(rng, kind, n_persons, n_cameras):
    counts = np.ones((n_persons, n_cameras), dtype=int)
    if kind == "equal":
        counts *= rng.integers(1, 4, n_cameras)
    elif kind == "unequal":
        counts = rng.integers(1, 5, counts.shape)
    elif kind == "one camera only":
        counts[1:][rng.random(n_persons - 1) < 0.3, 0] = 0
    elif kind == "few with more":
        counts[rng.random(n_persons) < 0.1, 0] = 3
    return counts


def relative_error(first, second, T):
    D, E = (learner.distances(T[:15], T[15:]) for learner in (first, second))
    return np.abs(D - E).max() / np.abs(E).max()
