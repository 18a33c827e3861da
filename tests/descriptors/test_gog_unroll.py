from __future__ import annotations

import numpy as np
import pytest

from resight.descriptors._gog_unroll import registers, static, unroll

N = 3


def triangle_sums(matrix, out):
    """Row sums of a lower triangle taken as a symmetric matrix; even rows negated."""
    for lane in range(out.shape[1]):
        A = registers()
        for i in static(N):
            for j in static(i + 1):
                A[i, j] = matrix[i * N + j, lane]
        for i in static(N - 1, -1, -1):
            total = 0.0
            for j in static(N):
                total += A[max(i, j), min(i, j)]
            if i % 2 == 0:
                total = -total
            out[i, lane] = total


def clipped(x):
    y = registers()
    y[0] = x
    if x > N:
        y[0] = float(N)
    else:
        y[0] += 1.0
    return y[0]


def test_unrolled_function_computes_the_same():
    matrix = np.random.default_rng(0).normal(size=(N * N, 4))
    plain, unrolled = np.empty((N, 4)), np.empty((N, 4))
    triangle_sums(matrix, plain)
    unroll(triangle_sums)(matrix, unrolled)
    np.testing.assert_array_equal(plain, unrolled)


def test_only_literal_indices_and_the_lane_loop_are_left():
    code = unroll(triangle_sums).__code__
    assert "A_2_1" in code.co_varnames
    assert not {"A", "i", "j"} & set(code.co_varnames)
    assert not {"static", "registers", "max"} & set(code.co_names)
    assert "range" in code.co_names


def test_tests_on_values_are_kept():
    assert [unroll(clipped)(x) for x in (1.0, 7.0)] == [clipped(x) for x in (1.0, 7.0)]


def test_belongs_to_the_same_file_so_that_it_can_be_cached():
    unrolled = unroll(triangle_sums)
    assert unrolled.__code__.co_filename == triangle_sums.__code__.co_filename
    assert unrolled.__code__.co_firstlineno == triangle_sums.__code__.co_firstlineno
    assert unrolled.__module__ == triangle_sums.__module__


def test_refuses_what_is_no_function():
    class Thing:
        pass

    with pytest.raises(TypeError, match="plain functions"):
        unroll(Thing)
