"""A table in the making is the same whatever comes first, and nothing is left when it fails."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from resight.errors import StoreError
from resight.features._tables import FAILED, GrowingTable

ROWS = np.arange(24, dtype=np.float32).reshape(6, 4)
KEYS = ["a", "b", "c", "d", "e", "f"]


def test_any_order_of_chunks_gives_the_same_table(tmp_path: Path) -> None:
    wanted = ["c", "a", "f", "b", "c", "e"]  # in another order, one twice, one not at all
    chunks = [(["a", "b"], ROWS[:2]), (["c", "d"], ROWS[2:4]), (["e", "f", "a"], ROWS[[4, 5, 0]])]
    for number, order in enumerate(permutations(chunks)):
        with GrowingTable(tmp_path, wanted, 4) as table:
            for keys, rows in order:
                table.put(keys, rows)
            table.keep(wanted, tmp_path / f"{number}.npy")
        found = np.load(tmp_path / f"{number}.npy")
        np.testing.assert_array_equal(found, ROWS[[KEYS.index(key) for key in wanted]])
    assert len(list(tmp_path.iterdir())) == 6  # and no temporary file


def test_rows_between_wanted_ones_stay_out(tmp_path: Path) -> None:
    # "a" and "c" lie two rows apart here and there, with different rows between them.
    wanted = ["a", "f", "c"]
    with GrowingTable(tmp_path, wanted, 4) as table:
        table.put(["f"], ROWS[5:])
        table.put(["a", "b", "c"], ROWS[:3])
        table.keep(wanted, tmp_path / "table.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "table.npy"), ROWS[[0, 5, 2]])


def test_failed_rows_are_nan_and_missing_ones_are_named(tmp_path: Path) -> None:
    path = tmp_path / "table.npy"
    with GrowingTable(tmp_path, [FAILED, "a", "b", "c"], 4) as table:
        table.put(["a", FAILED], ROWS[:2])
        assert table.missing == {FAILED: [0], "b": [2], "c": [3]}
        table.put(["b"], ROWS[1:2])
        table.keep([FAILED, "a", "b", FAILED], path)  # c could not be computed
    found = np.load(path)
    np.testing.assert_array_equal(found[1:3], ROWS[:2])
    assert np.isnan(found[[0, 3]]).all()


def test_a_table_where_everything_failed(tmp_path: Path) -> None:
    with GrowingTable(tmp_path, ["a", "b"], 4) as table:
        table.keep([FAILED, FAILED], tmp_path / "table.npy")
    found = np.load(tmp_path / "table.npy")
    assert found.shape == (2, 4)
    assert np.isnan(found).all()


def test_what_is_not_finished_is_removed(tmp_path: Path) -> None:
    with GrowingTable(tmp_path, ["a", "b"], 4) as table:
        table.put(["a"], ROWS[:1])
        assert len(list(tmp_path.glob(".*.part"))) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (140, hard))  # 128 bytes of header, less than a row
    try:
        with (
            pytest.raises(StoreError, match="no space left to write a table"),
            GrowingTable(tmp_path, ["a", "b"], 4) as table,
        ):
            table.put(["a"], ROWS[:1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
