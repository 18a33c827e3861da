from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation.pairwise import EmbeddedPoints, MeasuredPoints
from resight.evaluation.supervised_reranking import (
    _graph,
    _of_queries,
    _same_person,
    _spread,
    smoothed_manifold,
)


def squared(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=2)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 3)), rng.normal(size=(7, 3)), rng.normal(size=(6, 3))


PERSONS = ["ann", "bob", "ann", "cy", "bob", "ann"]


def ranked(Q, G, T, persons=PERSONS, **options):
    known = EmbeddedPoints(G, T)
    return smoothed_manifold(squared(Q, np.concatenate([G, T])), known, persons, **options)


def test_the_spread_is_the_closed_form_of_the_tensor_product_graph(points):
    """vec Q = (1 - alpha) (I - alpha S x S)^-1 vec Y, where enough iterations are taken."""
    Q, G, T = points
    S, scale = _graph(EmbeddedPoints(G, T), 4)
    Y = _same_person(np.array(PERSONS), 7)
    A = _of_queries(squared(Q, np.concatenate([G, T])), scale, 4)
    dense = S.toarray()
    system = np.eye(169) - 0.8 * np.kron(dense, dense)
    smooth = 0.2 * np.linalg.solve(system, Y.toarray().ravel()).reshape(13, 13)
    np.testing.assert_allclose(_spread(A, S, Y, 0.8, 200), A @ smooth, atol=1e-12)


def test_the_spread_is_the_papers_iteration(points):
    Q, G, T = points
    S, scale = _graph(EmbeddedPoints(G, T), 4)
    Y = _same_person(np.array(PERSONS), 7)
    A = _of_queries(squared(Q, np.concatenate([G, T])), scale, 4)
    smooth = np.zeros((13, 13))
    for _ in range(6):
        smooth = 0.8 * (S @ smooth @ S) + 0.2 * Y.toarray()
    np.testing.assert_allclose(_spread(A, S, Y, 0.8, 6), A @ smooth, atol=1e-14)


def test_labels_of_training_people_carry_a_query_to_its_match():
    """The query's look and the match's look are those of one training person, seen twice."""
    looks = np.array([[0.0, 0.0], [10.0, 0.0]])
    G = np.array([[10.2, 0.0], [4.0, 0.0], [-5.0, 3.0]])
    Q = np.array([[0.1, 0.0]])
    same, other = (
        ranked(Q, G, looks, persons, n_neighbors=1, original_weight=0.0)
        for persons in (["ann", "ann"], ["ann", "bob"])
    )
    assert same[0, 0] < other[0, 0] - 0.1
    np.testing.assert_allclose(same[0, 1:], other[0, 1:], atol=0.1)


def test_measured_and_embedded_points_agree(points):
    Q, G, T = points
    both = np.concatenate([G, T])
    measured = MeasuredPoints(squared(both, both), len(G))
    D = smoothed_manifold(squared(Q, both), measured, PERSONS, n_neighbors=3)
    np.testing.assert_allclose(D, ranked(Q, G, T, n_neighbors=3), atol=1e-9)


def test_order_and_blocks_do_not_matter(points, monkeypatch):
    Q, G, T = points
    whole = ranked(Q, G, T)
    order = np.random.default_rng(1).permutation(7)
    np.testing.assert_allclose(ranked(Q[::-1], G[order], T), whole[::-1][:, order], atol=1e-12)
    monkeypatch.setattr("resight.evaluation.supervised_reranking._ELEMENTS_AT_ONCE", 1)
    np.testing.assert_allclose(ranked(Q, G, T), whole, atol=1e-12)


def test_original_weight_one_is_the_original_order(points):
    Q, G, T = points
    D = ranked(Q, G, T, original_weight=1.0)
    np.testing.assert_array_equal(D.argsort(axis=1), squared(Q, G).argsort(axis=1))


def test_no_matrix_between_all_sightings_is_formed(monkeypatch):
    rng = np.random.default_rng(2)
    Q, G, T = rng.normal(size=(4, 5)), rng.normal(size=(3000, 5)), rng.normal(size=(1000, 5))
    monkeypatch.setattr("resight.evaluation.pairwise._ELEMENTS_AT_ONCE", 400_000)
    asked = np.maximum(0, squared(Q, np.concatenate([G, T])))
    tracemalloc.start()
    try:
        smoothed_manifold(asked, EmbeddedPoints(G, T), np.arange(1000) // 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 4000**2 / 4  # Q would be 8 n^2 bytes


def test_equal_points_and_bad_input(points):
    Q, G, T = points
    assert np.isfinite(ranked(0 * Q, 0 * G, 0 * T)).all()
    with pytest.raises(InputError, match="one person for each training sighting"):
        ranked(Q, G, T, PERSONS[1:])
    with pytest.raises(InputError, match="above 0 and below 1"):
        ranked(Q, G, T, alpha=1.0)
    with pytest.raises(InputError, match="negative"):
        smoothed_manifold(-np.ones((1, 13)), EmbeddedPoints(G, T), PERSONS)
