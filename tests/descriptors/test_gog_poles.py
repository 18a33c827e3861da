from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from resight.descriptors import _gog_fast as tables

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "log_poles.py"


@pytest.mark.parametrize(
    ("name", "condition", "error"),
    [("PATCH", 1e7, 6.5e-9), ("REGION", tables.REGION_CONDITION, 1.5e-8)],
)
def test_rational_function_is_the_logarithm_up_to_a_constant(name, condition, error):
    poles = np.array(getattr(tables, f"{name}_POLES"))
    weights = np.array(getattr(tables, f"{name}_WEIGHTS"))
    x = condition ** np.linspace(-0.5, 0.5, 20001)
    difference = np.log(x) + (weights / (x[:, None] + poles)).sum(axis=1)
    assert np.ptp(difference) / 2 < error
    assert len(poles) % 2 == 0  # the compiled loop takes them in pairs
    assert (poles > 0).all()
    assert (weights > 0).all()


@pytest.mark.parametrize("name", ["PATCH", "REGION"])
def test_poles_are_symmetric_as_the_logarithm_is(name):
    # log(1/x) = -log x, so 1/t is a pole where t is.
    poles = np.array(getattr(tables, f"{name}_POLES"))
    np.testing.assert_allclose(poles * poles[::-1], 1.0, rtol=1e-12)


def test_script_finds_the_interpolant(monkeypatch):
    spec = importlib.util.spec_from_file_location("log_poles", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "DIGITS", 60)
    poles, weights, constant = script.poles_and_weights(4, 100)
    # Two poles more square the error, roughly: exp(-2 pi^2 n / log(16 c)).
    assert script.largest_error(poles, weights, constant, 100) < 30 * np.exp(
        -2 * np.pi**2 * 4 / np.log(1600)
    )
    np.testing.assert_allclose([float(t * u) for t, u in zip(poles, poles[::-1], strict=True)], 1)
