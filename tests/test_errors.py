"""Errors name what was given, what is allowed and the nearest name."""

from __future__ import annotations

import pytest

from resight.errors import InputError, ResightError, StoreError, require_package, unknown_name


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


def test_a_missing_package_is_told_with_the_extra_that_brings_it():
    assert require_package("json", "any", "nothing").dumps([]) == "[]"
    told = r"a loom needs the package no_such_loom: pip install 'resight\[weaving\]'"
    with pytest.raises(InputError, match=told):
        require_package("no_such_loom", "weaving", "a loom")
