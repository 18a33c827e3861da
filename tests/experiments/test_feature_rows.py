"""Rows of tables that are read some at a time, here and in other processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from resight.experiments import feature_rows
from resight.experiments.feature_rows import FeatureRows
from resight.learners.normalizer import BlockNormalizer


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(50, width)).astype(np.float32) for width in (6, 4)]
    mapped = []
    for number, array in enumerate(arrays):
        np.save(tmp_path / f"{number}.npy", array)
        mapped.append(np.load(tmp_path / f"{number}.npy", mmap_mode="r"))
    return arrays, mapped


def test_rows_come_in_the_order_asked_for(tables):
    arrays, mapped = tables
    whole = np.concatenate(arrays, axis=1)
    source = FeatureRows(mapped, (6, 4), np.arange(10, 40))
    assert (len(source), source.n_features) == (30, 10)
    rows = np.array([3, 1, 2])
    np.testing.assert_array_equal(source.read(rows), whole[10 + rows])
    np.testing.assert_array_equal(source.select(rows).read(slice(1, 3)), whole[[11, 12]])
    np.testing.assert_array_equal(FeatureRows(mapped[:1], (6,)).read(), arrays[0])


def test_the_normaliser_is_that_of_all_rows_at_once(tables, monkeypatch):
    arrays, mapped = tables
    monkeypatch.setattr(feature_rows, "BLOCK", 7)
    source = FeatureRows(mapped, (6, 4), np.arange(31))
    rows = np.concatenate(arrays, axis=1)[:31]
    expected = BlockNormalizer((6, 4)).fit(rows)
    found = source.normalizer()
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-12)
    np.testing.assert_allclose(found.transform(rows), expected.transform(rows), rtol=1e-5)
    assert sum(len(block) for block in source.in_blocks()) == 31


def test_a_table_travels_as_its_file_name(tables):
    arrays, mapped = tables
    source = FeatureRows(mapped, (6, 4), np.arange(3))
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(), source.read())
    assert all(isinstance(part, np.memmap) for part in again.parts)
    part = FeatureRows([mapped[0][5:]], (6,))  # not the whole file, so it travels by value
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(part)).read(), arrays[0][5:])


def test_inner_products_are_counted_per_block(tables):
    assert FeatureRows(tables[1], (6, 4)).gram_bytes == 2 * 8 * 50**2
