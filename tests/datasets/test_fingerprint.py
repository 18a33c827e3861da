"""The fingerprint notices contents and labels, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight.datasets import fingerprint, load

Fill = Callable[[Iterable[str]], Path]
NAMES = ["a/p/1.png", "a/q/1.png", "b/p/1.png"]


def test_row_order_folder_and_layout_do_not_matter(fill: Fill, tmp_path: Path) -> None:
    sightings = load(fill(NAMES))
    expected = fingerprint(sightings)
    assert fingerprint(sightings.select([2, 0, 1])) == expected
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(moved)
    assert fingerprint(load(moved)) == expected


def test_contents_and_labels_matter(fill: Fill, tmp_path: Path) -> None:
    sightings = load(fill(NAMES))
    expected = fingerprint(sightings)
    changes = {
        "persons": np.array(["p", "q", "x"]),
        "cameras": np.array(["a", "c", "b"]),
        "roles": np.array(["train", "", ""]),
        "times": np.array([0.0, np.nan, np.nan]),
        "boxes": np.ones((3, 4), int),
    }
    for column, values in changes.items():
        assert fingerprint(replace(sightings, **{column: values})) != expected, column
    file = tmp_path / NAMES[1]
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1  # same size, same name, one bit
    file.write_bytes(contents)
    changed = fingerprint(sightings)
    assert changed != expected
    file.unlink()
    assert fingerprint(sightings) not in (changed, expected)
