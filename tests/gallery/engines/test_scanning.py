"""The search for erased bytes finds every needle, wherever it lies."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from resight.gallery.engines import scanning
from resight.gallery.engines.scanning import Scanner, file_blocks, needles_of


@pytest.mark.parametrize("size", [10, 100, 1000, 40_000, 1 << 21])
@pytest.mark.parametrize("block", [7, 4096, 1 << 20])
def test_it_finds_what_a_plain_search_finds(size: int, block: int) -> None:
    if size / block > 10_000:
        pytest.skip("takes long, shows nothing new")
    rng = np.random.default_rng(size + block)
    content = rng.bytes(size)
    needles = [content[i : i + n] for i, n in ((0, 1), (3, 2), (size - 5, 5), (size // 2, 40))]
    needles += [rng.bytes(n) for n in (3, 4, 32)] + ["Zoë".encode(), b"\0\0\0\0"]
    blocks = (content[i : i + block] for i in range(0, size, block))
    assert Scanner(needles).scan(blocks) == {needle for needle in needles if needle in content}


def test_zeros_and_thousands_of_needles_cost_little() -> None:
    rng = np.random.default_rng(0)
    needles = [bytes(9) + rng.bytes(23) for _ in range(5000)]
    content = bytes(4 << 20) + needles[77] + bytes(4 << 20)
    start = time.process_time()
    assert Scanner(needles).scan([content]) == {needles[77]}
    assert time.process_time() - start < 5


def test_needles_come_from_all_over_and_tell_something() -> None:
    rng = np.random.default_rng(1)
    content = rng.bytes(220_000)
    needles = needles_of(content)
    assert len(needles) == 8
    places = sorted(content.index(needle) for needle in needles)
    assert places[0] < 2000
    assert places[-1] > 219_000
    assert needles_of(bytes(10_000)) == []  # nothing to tell it by
    assert needles_of(content[:24]) == [content[6:24]]


def test_a_file_that_is_gone_has_no_blocks() -> None:
    assert list(file_blocks("/nowhere/at/all")) == []


def test_deleted_files_are_not_held_open(tmp_path: Path) -> None:
    """A process that erases from many galleries, one after the other, ran out of descriptors."""
    before = len(scanning._HELD)
    for number in range(40):
        file = tmp_path / f"{number}.db"
        file.write_bytes(b"something")
        assert b"".join(file_blocks(str(file))) == b"something"
        file.unlink()
    assert len(scanning._HELD) <= before + 1
