"""LOMO and GOG equal the codes of their authors, tested in every clone (tests/data/golden)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from resight.descriptors import gog, lomo

OUTPUTS = np.load(Path(__file__).parents[1] / "data" / "golden" / "descriptors.npz")
IMAGES = sorted({key.split("|")[0] for key in OUTPUTS})
EVERY = 9  # so many entries of GOG's vectors are one that is kept; the 7 strips take turns


def test_there_is_something_to_compare_with() -> None:
    assert len(IMAGES) == 6
    assert sorted(OUTPUTS) == sorted(
        f"{name}|{what}" for name in IMAGES for what in ("gog", "image", "lomo_dagger")
    )


@pytest.mark.parametrize("name", IMAGES)
def test_lomo(name: str) -> None:
    ours = lomo(OUTPUTS[f"{name}|image"], retinex=False, resize=False)
    np.testing.assert_allclose(ours, OUTPUTS[f"{name}|lomo_dagger"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", IMAGES)
def test_gog(name: str) -> None:
    ours, theirs = gog(OUTPUTS[f"{name}|image"], resize=False)[::EVERY], OUTPUTS[f"{name}|gog"]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-8 * np.abs(theirs).max())
