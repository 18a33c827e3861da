"""Parts of the k-reciprocal encoding: neighbours, weights, memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.evaluation.pairwise import EmbeddedPoints, _smallest, nearest
from resight.evaluation.reranking import encode, k_reciprocal


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12))
def test_smallest_is_a_stable_sort_cut_off(seed, n, k):
    D = np.random.default_rng(seed).integers(0, 4, (5, n)).astype(float)
    k = min(k, n)
    assert _smallest(D, k).tolist() == np.argsort(D, axis=1, kind="stable")[:, :k].tolist()


def test_every_point_is_its_own_first_neighbour_even_among_copies():
    points = EmbeddedPoints(np.zeros((3, 2)), np.ones((4, 2)))
    neighbours, scale = nearest(points, 2)
    assert neighbours[:, 0].tolist() == list(range(7))
    assert scale.tolist() == [2.0] * 7


def test_weights_are_distributions():
    rng = np.random.default_rng(0)
    weights, _ = encode(EmbeddedPoints(rng.random((20, 3)), rng.random((30, 3))), 5, 3)
    assert weights.sum(axis=1) == pytest.approx(np.ones(50))
    assert weights.data.min() > 0


def test_blocks_do_not_change_the_result(monkeypatch):
    E = np.random.default_rng(0).normal(size=(120, 5))
    whole = k_reciprocal(EmbeddedPoints(E[:50], E[50:]))
    for module in ("pairwise", "reranking"):
        monkeypatch.setattr(f"resight.evaluation.{module}._ELEMENTS_AT_ONCE", 600)
    monkeypatch.setattr("resight.evaluation.pairwise._PAIRS_AT_ONCE", 100)
    assert k_reciprocal(EmbeddedPoints(E[:50], E[50:])) == pytest.approx(whole, abs=1e-12)


def test_memory_is_far_below_one_matrix_of_all_pairs(monkeypatch):
    for module in ("pairwise", "reranking"):
        monkeypatch.setattr(f"resight.evaluation.{module}._ELEMENTS_AT_ONCE", 50_000)
    monkeypatch.setattr("resight.evaluation.pairwise._PAIRS_AT_ONCE", 5_000)
    E = np.random.default_rng(0).normal(size=(4000, 8))
    tracemalloc.start()
    found = k_reciprocal(EmbeddedPoints(E[:1000], E[1000:]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (1000, 3000)
    assert peak - found.nbytes < 0.25 * 8 * len(E) ** 2
