"""Errors name what was given, what is allowed and the nearest name."""

from __future__ import annotations

import pytest

from resight.errors import InputError, ResightError, StoreError, unknown_name


def test_the_nearest_name_is_offered():
    message = str(unknown_name("kernel", "ploy", ["rbf", "poly"]))
    assert message == "unknown kernel 'ploy'; did you mean 'poly'? Valid: poly, rbf"


def test_far_names_get_the_list_alone():
    message = str(unknown_name("kernel", "xyzzy", ["rbf", "poly"]))
    assert message == "unknown kernel 'xyzzy'. Valid: poly, rbf"


def test_input_errors_are_value_errors_as_scikit_learn_expects():
    assert issubclass(InputError, ValueError)
    for kind in (InputError, StoreError):
        with pytest.raises(ResightError):
            raise kind("told")
