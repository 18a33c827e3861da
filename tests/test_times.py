from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.times import parse, show


@given(st.integers(0, 10**7) | st.integers(10**9, 2 * 10**9))
def test_what_is_shown_can_be_read(seconds: int) -> None:
    assert parse(show(float(seconds))) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("1:30", 90.0),
        ("0:01:30.5", 90.5),
        ("-5", -5.0),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9),
        ("2023-11-14", 1699920000.0),
    ],
)
def test_forms(text: str, seconds: float) -> None:
    assert parse(text) == seconds


@pytest.mark.parametrize("text", ["", "noon", "1:2:3:4", "nan", "inf", "2023-13-01", "1e999"])
def test_nonsense(text: str) -> None:
    with pytest.raises(InputError, match="is not a valid time"):
        parse(text)


def test_unknown_times_are_empty() -> None:
    assert show(None) == show(float("nan")) == ""
    assert show(-61.0) == "-0:01:01"
