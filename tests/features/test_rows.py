"""Rows of tables that are read some at a time, here and in other processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from resight.features import rows as feature_rows
from resight.features.rows import FeatureRows
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
    source = FeatureRows(tables[1], (6, 4), np.arange(3))
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(), source.read())
    assert all(isinstance(part, np.memmap) for part in again.parts)


def test_some_rows_of_a_file_travel_as_their_place_in_it(tmp_path):
    """As the store gives them, when the table of a larger dataset holds what is asked for."""
    table = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32)
    np.save(tmp_path / "table.npy", table)
    part = np.load(tmp_path / "table.npy", mmap_mode="r")[100:400]
    source = FeatureRows([part, part[:, :]], (40, 40), np.array([7, 250, 8]))
    sent = pickle.dumps(source)
    assert len(sent) < 2000 < part.nbytes
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.read(), np.tile(table[[107, 350, 108]], 2))
    assert all(isinstance(one, np.memmap) for one in again.parts)
    assert len(pickle.dumps(again)) < 2000  # and on to the next process
    nested = FeatureRows([part[50:][10:60]], (40,))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(nested)).read(), table[160:210])


@pytest.mark.parametrize("where", [np.s_[::2], np.s_[::-1], np.s_[:, 3:], np.s_[:, ::2]])
def test_what_is_no_run_of_whole_rows_travels_by_value(tables, where):
    arrays, mapped = tables
    again = pickle.loads(pickle.dumps(FeatureRows([mapped[0][where]], (6,), np.arange(4))))
    np.testing.assert_array_equal(again.read(), arrays[0][where][:4])


def test_of_arrays_in_memory_only_the_rows_asked_for_travel(tables):
    arrays, mapped = tables
    big = np.repeat(arrays[0], 100, axis=0)
    source = FeatureRows([big], (6,)).select(np.array([4000, 3, 1200]))
    sent = pickle.dumps(source)
    assert len(sent) < 2000 < big.nbytes
    np.testing.assert_array_equal(pickle.loads(sent).read(), big[[4000, 3, 1200]])
    mixed = FeatureRows([arrays[0], mapped[1]], (6, 4), np.array([9, 2]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mixed)).read(), mixed.read())


def test_inner_products_are_counted_per_block(tables):
    assert FeatureRows(tables[1], (6, 4)).gram_bytes == 2 * 8 * 50**2
