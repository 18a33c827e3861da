"""Shortened rows: what each feature adds to their squared lengths."""

from __future__ import annotations

import numpy as np
import pytest

from resight.tuning.sketch import shares, shortened


@pytest.mark.parametrize("d", [100, 5000])
def test_shares_of_features_add_up_to_the_squared_length(d: int) -> None:
    rows = np.random.default_rng(0).normal(size=(6, d))
    lengths = (shortened(rows) ** 2).sum(axis=1)
    np.testing.assert_allclose(shares(rows).sum(axis=1), lengths)
