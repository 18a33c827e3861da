"""Re-ranking against dense definitions, published outputs and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluation import RankingResult, reranking
from resight.evaluation.pairwise import EmbeddedPoints, MeasuredPoints
from resight.evaluation.reranking import cross_view_reciprocal


def k_reciprocal(Q, G, **ways):
    return reranking.k_reciprocal(EmbeddedPoints(Q, G), **ways)


def k_reciprocal_from_distances(D, n_queries, **ways):
    return reranking.k_reciprocal(MeasuredPoints(D, n_queries), **ways)


def first_ranks(*ranked, **options):
    return RankingResult.from_distances(*ranked, **options).first_ranks


def squared(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def k_reciprocal_by_definition(D, n_queries, k1, k2, weight):
    """Dense statement with sets: D holds the squared distances of all points to all points."""
    n = len(D)
    ordered = D.copy()
    np.fill_diagonal(ordered, -1.0)
    order = np.argsort(ordered, axis=1, kind="stable")
    scaled = D / D.max(axis=1, keepdims=True)

    def mutual(i, k):
        return {j for j in order[i, : k + 1].tolist() if i in order[j, : k + 1]}

    V = np.zeros((n, n))
    cores = [mutual(i, round(k1 / 2)) for i in range(n)]
    for i in range(n):
        members = mutual(i, k1)
        joined = set(members)
        for core in (cores[c] for c in members):
            if len(core & members) > 2 / 3 * len(core):
                joined |= core
        joined = sorted(joined)
        V[i, joined] = np.exp(-scaled[i, joined])
    V /= V.sum(axis=1, keepdims=True)
    V = np.array([V[order[i, :k2]].mean(axis=0) for i in range(n)])
    shared = np.array(
        [np.minimum(V[i], V[n_queries:]).sum(axis=1) for i in range(n_queries)]
    )  # sum of minima; the sum of maxima is 2 minus it because rows sum to one
    return (1 - weight) * (1 - shared / (2 - shared)) + weight * scaled[:n_queries, n_queries:]


def clusters(n_people, n_each, d, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(n_people, d)), n_each, axis=0)
    return centres + 0.8 * rng.normal(size=centres.shape)


@pytest.mark.parametrize(("k1", "k2"), [(20, 6), (5, 1), (7, 9)])
def test_equals_the_dense_definition_at_a_thousand_points(k1, k2):
    E = clusters(200, 5, 8)
    Q, G = E[::2], E[1::2]
    both = np.concatenate([Q, G])
    expected = k_reciprocal_by_definition(squared(both, both), len(Q), k1, k2, 0.3)
    got = k_reciprocal(Q, G, k1=k1, k2=k2)
    assert np.abs(got - expected).max() < 1e-12
    from_distances = k_reciprocal_from_distances(squared(both, both), len(Q), k1=k1, k2=k2)
    assert np.abs(from_distances - expected).max() < 1e-12


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 8), st.integers(1, 30))
def test_small_sets_with_ties_and_neighbourhoods_larger_than_the_data(seed, n_q, n_g, k1):
    rng = np.random.default_rng(seed)
    E = rng.integers(0, 3, (n_q + n_g, 2)).astype(float)
    E[0] += 0.5  # not all points equal
    k2 = int(rng.integers(1, 8))
    expected = k_reciprocal_by_definition(squared(E, E), n_q, k1, k2, 0.4)
    got = k_reciprocal(E[:n_q], E[n_q:], k1=k1, k2=k2, original_weight=0.4)
    assert np.abs(got - expected).max() < 1e-12


@pytest.mark.parametrize("setting", ["k110_k23_l0.5", "k120_k21_l0.3", "k120_k26_l0.3"])
@pytest.mark.parametrize("name", ["s200", "u1000"])
def test_equals_the_published_code(golden, name, setting):
    data = np.load(golden / "learners" / "data" / f"{name}.npz")
    expected = np.load(golden / "learners" / f"{name}__krecip_{setting}.npz")["D"]
    k1, k2, weight = int(setting[2:4]), int(setting[7]), float(setting[-3:])
    got = k_reciprocal(
        data["PTa"][:, :50], data["PTb"][:, :50], k1=k1, k2=k2, original_weight=weight
    )
    assert np.abs(got - expected).max() < 1e-6  # the published code works in float32
    people = data["ta"], data["tb"]
    assert first_ranks(got, *people).tolist() == first_ranks(expected, *people).tolist()
    # Places differ at most where the published float32 values are equal up to rounding.
    in_our_order = np.take_along_axis(expected, np.argsort(got, axis=1), axis=1)
    assert np.diff(in_our_order, axis=1).min() > -5e-7


def test_weight_one_is_the_normalised_distance_and_order_of_the_gallery_does_not_matter():
    E = clusters(20, 4, 6)
    Q, G = E[:30], E[30:]
    D, all_d = squared(Q, G), squared(Q, E)
    plain = k_reciprocal(Q, G, original_weight=1.0)
    assert plain == pytest.approx(D / all_d.max(axis=1, keepdims=True))
    order = np.random.default_rng(0).permutation(len(G))
    assert k_reciprocal(Q, G[order]) == pytest.approx(k_reciprocal(Q, G)[:, order], abs=1e-12)


def test_it_helps_where_a_person_was_seen_several_times():
    people = np.repeat(np.arange(60), 6)
    E = clusters(60, 6, 14)
    Q, G, asked, held = E[::2], E[1::2], people[::2], people[1::2]
    before = np.mean(first_ranks(squared(Q, G), asked, held) == 1)
    after = np.mean(first_ranks(k_reciprocal(Q, G, k1=8, k2=3), asked, held) == 1)
    assert after > before + 0.03


def test_identical_points_do_not_divide_by_zero():
    assert k_reciprocal(np.ones((2, 3)), np.ones((3, 3))).tolist() == [[0.0] * 3] * 2


def cross_view_by_definition(D, k):
    """Grow the window one step at a time, as the text says it; no ties in D."""
    n_q, n_g = D.shape
    lists = np.argsort(D, axis=1)  # gallery in the order of each query
    back = np.argsort(D, axis=0).T  # queries in the order of each gallery sighting
    result = np.empty((n_q, n_g))
    for i in range(n_q):
        window, mutual = k, []
        while len(mutual) < k:
            mutual = [
                (back[j].tolist().index(i), place, j)
                for place, j in enumerate(lists[i, :window].tolist())
                if i in back[j, :window]
            ]
            window += 1
        head = [j for _, _, j in sorted(mutual)[:k]]
        rest = [j for j in lists[i].tolist() if j not in head]
        result[i, head + rest] = np.arange(n_g)
    return result


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 8), st.data())
def test_cross_view_equals_its_definition(seed, n_q, n_g, data):
    D = np.random.default_rng(seed).random((n_q, n_g))
    k = data.draw(st.integers(1, n_g))
    assert cross_view_reciprocal(D, k=k).tolist() == cross_view_by_definition(D, k).tolist()


@given(st.integers(0, 10_000), st.integers(2, 7), st.integers(2, 7), st.integers(1, 9))
def test_cross_view_does_not_depend_on_the_order_of_rows_and_columns(seed, n_q, n_g, k):
    rng = np.random.default_rng(seed)
    D = rng.integers(0, 4, (n_q, n_g)).astype(float)
    rows, columns = rng.permutation(n_q), rng.permutation(n_g)
    moved = cross_view_reciprocal(D[np.ix_(rows, columns)], k=k)
    assert moved.tolist() == cross_view_reciprocal(D, k=k)[np.ix_(rows, columns)].tolist()


def test_cross_view_keeps_a_perfect_ranking_and_a_tie_stays_a_tie():
    perfect = 1.0 - np.eye(6) + 0.01 * np.random.default_rng(0).random((6, 6))
    assert np.diag(cross_view_reciprocal(perfect, k=3)).tolist() == [0.0] * 6
    assert len(np.unique(cross_view_reciprocal(np.ones((3, 5)), k=2))) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: k_reciprocal([[1.0]], [[1.0, 2.0]]), "same d"),
        (lambda: k_reciprocal([[np.nan]], [[1.0]]), "finite"),
        (lambda: k_reciprocal([[1.0]], [[2.0]], k1=0), "k1 is 0; it must be at least 1"),
        (lambda: k_reciprocal([[1.0]], [[2.0]], k2=0), "k2 is 0; it must be at least 1"),
        (lambda: k_reciprocal([[1.0]], [[2.0]], original_weight=2), "between 0 and 1"),
        (lambda: k_reciprocal_from_distances([[0.0, 1.0]], 1), "square matrix"),
        (lambda: k_reciprocal_from_distances([[0.0, 1.0], [1.0, 0.0]], 2), "at least one of each"),
        (lambda: k_reciprocal_from_distances([[0.0, -1.0], [-1.0, 0.0]], 1), "non-negative"),
        (lambda: k_reciprocal_from_distances([0.0, 1.0], 1), "square matrix"),
        (lambda: cross_view_reciprocal([1.0]), "n_queries, n_gallery"),
        (lambda: cross_view_reciprocal([[np.inf]]), "infinite"),
        (lambda: cross_view_reciprocal([[1.0]], k=0), "k is 0"),
    ],
)
def test_refusals_say_what_is_needed(call, message):
    with pytest.raises(InputError, match=message):
        call()
