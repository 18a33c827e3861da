from __future__ import annotations

import ctypes
import itertools
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.gallery.index import ExactIndex, _within, warm_up


def brute_force(E: np.ndarray, q: np.ndarray, k: int, allowed: np.ndarray) -> tuple[list, list]:
    D = ((E.astype(float) - q.astype(float)) ** 2).sum(axis=1)
    order = [row for row in np.argsort(D, kind="stable") if allowed[row]][:k]
    return order, D[order].tolist()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 200), r=st.integers(1, 20), k=st.integers(1, 30), m=st.integers(1, 18),
    share=st.floats(0, 1), seed=st.integers(0, 10**6), spread=st.sampled_from([1e-3, 1.0, 1e3]),
)  # fmt: skip
def test_search_is_the_definition(
    n: int, r: int, k: int, m: int, share: float, seed: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    E = (spread * rng.normal(size=(n, r)) + 5).astype(np.float32)
    E[n // 2 :] = E[: n - n // 2]  # ties
    Q = (spread * rng.normal(size=(m, r)) + 5).astype(np.float32)
    allowed = rng.random(n) < share
    found = ExactIndex(E).search(Q, k, allowed)
    for q, (rows, distances) in zip(Q, found, strict=True):
        order, expected = brute_force(E, q, k, allowed)
        assert rows.tolist() == order
        assert np.allclose(distances, expected, rtol=1e-12)


def test_many_blocks_and_close_neighbours() -> None:
    """Neighbours that float32 cannot tell apart are ordered by float64."""
    rng = np.random.default_rng(0)
    E = np.repeat(rng.normal(size=(50, 8)), 400, axis=0) * 100
    E = (E + rng.normal(size=E.shape) * 1e-4).astype(np.float32)
    Q = E[::4001] + np.float32(1e-4)
    for (rows, _), q in zip(ExactIndex(E).search(Q, 30), Q, strict=True):
        assert rows.tolist() == brute_force(E, q, 30, np.ones(len(E), bool))[0]
    for q in Q:
        [(rows, _)] = ExactIndex(E).search(q[None], 30)
        assert rows.tolist() == brute_force(E, q, 30, np.ones(len(E), bool))[0]


class _Traces(ctypes.Structure):
    """Signalling NaN, more of it than a product needs of the stack."""

    _fields_ = [("numbers", ctypes.c_uint32 * 16_384)]


def test_what_lies_on_the_stack_raises_no_warning() -> None:
    """Some builds of OpenBLAS read it, as the product of rows of 5 numbers does with AVX-512."""
    traces = _Traces((ctypes.c_uint32 * 16_384)(*[0x7FA00000] * 16_384))
    leave = ctypes.CDLL(None).abs  # an argument that is passed by value is copied to the stack
    leave.argtypes = [_Traces]
    rng = np.random.default_rng(0)
    for width in range(1, 20):
        index = ExactIndex(rng.random((483, width), np.float32))
        queries = rng.random((2, width), np.float32)
        some = rng.random(483) < 0.1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for allowed in (None, some):
                leave(traces)
                [(rows, _)] = index.search(queries[:1], 10, allowed)
                leave(traces)
                index.search(queries, 10, allowed)
                every = np.ones(483, bool) if allowed is None else allowed
                assert rows.tolist() == brute_force(index.embeddings, queries[0], 10, every)[0]
            leave(traces)
            index.distances(queries)


def test_nothing_allowed_and_nothing_there() -> None:
    empty = ExactIndex(np.empty((0, 4), np.float32)).search(np.ones((2, 4), np.float32), 3)
    assert [len(rows) for rows, _ in empty] == [0, 0]
    [(rows, _)] = ExactIndex(np.ones((5, 4), np.float32)).search(
        np.ones((1, 4), np.float32), 3, np.zeros(5, bool)
    )
    assert len(rows) == 0


def test_the_values_within_a_slack_of_the_kth_smallest_are_all_found() -> None:
    rng = np.random.default_rng(3)
    for turn in range(300):
        n, k, slack = (
            int(rng.integers(1, 900)),
            int(rng.integers(1, 60)),
            (0.0, 0.01, 0.3)[turn % 3],
        )
        near = rng.normal(size=n).astype(np.float32).round(1 + turn % 2)  # with equal ones
        near[rng.random(n) < 0.3 * (turn % 4)] = np.inf
        kth = np.sort(near)[k - 1] if k < n else np.float32(np.inf)
        expected = np.flatnonzero((near <= kth + np.float32(slack)) & np.isfinite(near))
        np.testing.assert_array_equal(_within(near, k, slack), expected)


def test_compiled_products_of_any_shape_are_those_of_numpy() -> None:
    from resight.gallery._few_queries import products

    rng = np.random.default_rng(4)
    for n, m, r in itertools.product((1, 2, 3, 8), range(1, 10), (1, 7, 33)):
        embeddings, queries = (rng.normal(size=(k, r)).astype(np.float32) for k in (n, m))
        found = np.full((m, n), np.nan, np.float32)
        products(embeddings, queries, found)
        np.testing.assert_allclose(found, queries @ embeddings.T, rtol=1e-4, atol=1e-5)


def test_the_warm_up_compiles_what_searches_use() -> None:
    from resight.gallery._few_queries import products

    warm_up()
    compiled = list(products.signatures)
    for n in (100, 5000):  # one block, and several
        ExactIndex(np.ones((n, 3), np.float32)).distances(np.ones((2, 3), np.float32))
    assert compiled
    assert list(products.signatures) == compiled
