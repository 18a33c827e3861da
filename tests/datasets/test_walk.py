"""Order and choice of files do not depend on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from resight.datasets._walk import folders_without_images, images_below, in_order, natural

Fill = Callable[[Iterable[str]], Path]


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab019_"), min_size=1, max_size=6), unique=True))
def test_order_is_the_same_from_any_start(names: list[str]) -> None:
    paths = [PurePosixPath(name) for name in names]
    assert in_order(paths) == in_order(paths[::-1]) == in_order(sorted(paths))


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_sort_by_value(first: int, second: int) -> None:
    assert (natural(f"c{first}") < natural(f"c{second}")) == (first < second)


def test_images_by_suffix_in_any_case(fill: Fill) -> None:
    folder = fill(["a/1.PNG", "a/2.JpG", "a/3.tif"])
    (folder / "a" / "4.txt").write_text("no image")
    assert [path.name for path in images_below(folder)] == ["1.PNG", "2.JpG", "3.tif"]


def test_folders_without_images_are_found_at_both_levels(fill: Fill) -> None:
    folder = fill(["a/p/1.png"])
    for empty in ("a/q", "b", "c/r"):
        (folder / empty).mkdir(parents=True)
    assert folders_without_images(folder, images_below(folder)) == ["a/q", "b", "c", "c/r"]
