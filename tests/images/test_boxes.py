"""Boxes in images: clipped to the image, refused outside of it."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.images import cut
from resight.images.arrays import inside

IMAGE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)  # 6 wide, 4 high


@pytest.mark.parametrize(
    ("box", "rows", "columns"),
    [
        ((1, 2, 3, 1), slice(2, 3), slice(1, 4)),
        ((-2, -1, 4, 3), slice(0, 2), slice(0, 2)),
        ((4, 3, 90, 90), slice(3, 4), slice(4, 6)),
        ((-9, -9, 99, 99), slice(0, 4), slice(0, 6)),
    ],
)
def test_what_lies_inside_is_cut_out(
    box: tuple[int, int, int, int], rows: slice, columns: slice
) -> None:
    crop = cut(IMAGE, box)
    np.testing.assert_array_equal(crop, IMAGE[rows, columns])
    assert crop.flags.c_contiguous
    np.testing.assert_array_equal(cut(IMAGE, np.array(box)), crop)


@pytest.mark.parametrize(
    "box", [(6, 0, 2, 2), (0, 4, 2, 2), (-5, 0, 5, 2), (0, -3, 2, 2), (1, 1, 0, 2)]
)
def test_boxes_outside_are_refused(box: tuple[int, int, int, int]) -> None:
    assert inside(IMAGE, box).size == 0
    x, y, w, h = box
    words = f"box x={x} y={y} w={w} h={h} is outside the image of 6 x 4 pixels"
    with pytest.raises(InputError, match=words):
        cut(IMAGE, box)
