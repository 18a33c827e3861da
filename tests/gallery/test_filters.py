from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.gallery import Filter

CAMERAS = np.array(list("abcabc"))
TIMES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
PERSONS = np.array(["x", "", "y", "x", "", "y"])


@given(
    cameras=st.sets(st.sampled_from("ab")), exclude=st.sets(st.sampled_from("c")),
    after=st.none() | st.floats(0, 3), before=st.none() | st.floats(3, 6),
    persons=st.sets(st.sampled_from("xy")),
)  # fmt: skip
def test_mask_is_the_definition(
    cameras: set[str], exclude: set[str], after: float | None, before: float | None, persons: set
) -> None:
    where = Filter(tuple(cameras), tuple(exclude), after, before, tuple(persons))
    mask = where.mask(CAMERAS, TIMES, PERSONS)
    for i in range(6):
        fits = not cameras or CAMERAS[i] in cameras
        fits &= CAMERAS[i] not in exclude
        fits &= after is None or TIMES[i] >= after
        fits &= before is None or TIMES[i] <= before
        fits &= not persons or PERSONS[i] in persons
        assert mask[i] == fits
    assert bool(where) == bool(cameras or exclude or persons or (after, before) != (None, None))


def test_widening_drops_one_condition_each() -> None:
    where = Filter(("a",), ("b",), 1.0, 2.0, ("x",))
    words = ["any camera", "include the excluded cameras", "any time", "any person"]
    assert where.widened() == words
    assert Filter(before=0.0).widened() == ["any time"]
    assert Filter().widened() == []


def test_contradictions() -> None:
    with pytest.raises(InputError, match="swap the two"):
        Filter(after=2.0, before=1.0)
    with pytest.raises(InputError, match="both selected and excluded"):
        Filter(cameras=("a",), exclude_cameras=("a",))
