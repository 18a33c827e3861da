"""Block normalisation against its definition, and scikit-learn's checks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import resight
from resight import BlockNormalizer
from resight.errors import InputError


@parametrize_with_checks([BlockNormalizer()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(3.0, 1.0, size=(8, 9))


@pytest.mark.parametrize("blocks", [None, (9,), (2, 3, 4), [1] * 9])
def test_each_block_is_centred_by_the_training_mean_and_has_norm_one(rows, blocks):
    train, test = rows[:5], rows[5:]
    out = BlockNormalizer(blocks).fit(train).transform(test)
    start = 0
    for width in blocks or (9,):
        block = test[:, start : start + width] - train[:, start : start + width].mean(axis=0)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        np.testing.assert_allclose(out[:, start : start + width], block, rtol=1e-12)
        start += width


def test_a_block_at_the_mean_stays_zero(rows):
    normalizer = BlockNormalizer((2, 7)).fit(rows)
    row = rows[:1].copy()
    row[:, :2] = normalizer.mean_[:2]
    out = normalizer.transform(row)
    np.testing.assert_array_equal(out[:, :2], 0.0)
    np.testing.assert_allclose(np.linalg.norm(out[:, 2:]), 1.0)


def test_input_is_left_alone_and_single_precision_stays(rows):
    single = rows.astype(np.float32)
    single.setflags(write=False)
    out = BlockNormalizer((4, 5)).fit_transform(single)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, BlockNormalizer((4, 5)).fit_transform(rows), atol=1e-5)


def test_saved_and_loaded_it_is_the_same(rows, tmp_path):
    normalizer = BlockNormalizer((4, 5)).fit(rows)
    normalizer.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(rows), normalizer.transform(rows))


@pytest.mark.parametrize("blocks", [(4, 4), (10,), (9, 0), (12, -3)])
def test_blocks_must_add_up(rows, blocks):
    with pytest.raises(InputError, match="add up to the number of features"):
        BlockNormalizer(blocks).fit(rows)
