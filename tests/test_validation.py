"""What may enter is the same by every door."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight import validation as v
from resight.errors import InputError
from resight.times import parse, show

BAD_NAMES = ("\x07", "a\nb", "a\tb", "\u202eabc", "\u2066x", "\u2028", "\udcff", "\0", "x" * 256)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_cannot_be_shown_or_typed(name: str) -> None:
    with pytest.raises(InputError, match=r"characters|direction mark|not UTF-8"):
        v.check_name(name, "person")
    with pytest.raises(InputError):
        v.check_names(["fine", name], "persons")


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=255))
def test_names_of_any_script_pass(name: str) -> None:
    assert v.check_name(name, "person") == name
    assert v.check_names([name, 7], "persons").tolist() == [name, "7"]


@pytest.mark.parametrize(
    "names", ["text", b"text", 7, [None], [1.5], [float("nan")], [["a"]], [b"a"]]
)
def test_lists_of_names_that_are_none(names: object) -> None:
    with pytest.raises(InputError):
        v.check_names(names, "persons")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 11, "7", None, True, 1j, [1]])
def test_numbers_are_finite_and_in_range(value: object) -> None:
    with pytest.raises(InputError, match=r"retention=.*finite number from 0 to 10"):
        v.check_number(value, "retention", 0, 10)
    with pytest.raises(InputError, match="whole number"):
        v.check_count(value, "k", 0, 10)
    assert v.check_number(np.float32(7), "retention", 0, 10) == 7.0
    assert v.check_count(np.int64(7), "k", 0, 10) == 7


@pytest.mark.parametrize("time", ["1e300", "9" * 20, "1700000000000", "inf", "nan", "10000-01-01"])
def test_times_lie_between_1900_and_9999(time: str) -> None:
    with pytest.raises(InputError, match="1900"):
        parse(time)


@given(st.floats(v.EARLIEST, v.LATEST))
def test_every_time_that_may_enter_can_be_shown(seconds: float) -> None:
    assert parse(repr(seconds)) == seconds
    assert show(seconds)


def test_times_that_older_versions_let_in_are_shown() -> None:
    assert show(1e300) == "1e+300 s"
    assert show(float("inf")) == "inf s"


@pytest.mark.parametrize("box", [[0, 0, 0, 1], [0, 0, 1, -1], [1e9, 0, 1, 1], [0, 0, 1, 10**30],
                                 [0, 0, float("nan"), 1], [0, 0, 1], ["a"] * 4])  # fmt: skip
def test_boxes(box: list) -> None:
    with pytest.raises(InputError, match="box"):
        v.check_boxes([[0, 0, 1, 1], box])


def test_arrays() -> None:
    rows = np.ones((3, 2), np.float32)
    assert v.check_array(rows, "features", (None, 2)) is rows  # gigabytes are not copied
    for bad in ([[1, 2, 3]], [1, 2], [["a", "b"]], [[1, [2]]], [[1, np.inf]], [[1j, 2]], None):
        with pytest.raises(InputError, match="features"):
            v.check_array(bad, "features", (None, 2))


def test_files_are_regular_and_not_larger_than_stated(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert v.read_text(tmp_path / "file", 4) == "text"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "latin").write_bytes(b"\xff")
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(2**40)  # takes no room; reading it would
    for name, words in {
        "pipe": "not a regular file", "link": "not a regular file", "": "is a folder",
        "none": "does not exist", "latin": "not UTF-8", "sparse": "the limit is", "a\0b": "null",
        "n" * 5000: "too long",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=words):
            v.read_text(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "NaN", "[Infinity]", "1" * 9999]
)
def test_json_that_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"deep|not a number|digits"):
        v.parse_json(text)
