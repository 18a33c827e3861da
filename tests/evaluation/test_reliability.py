from __future__ import annotations

import numpy as np
import pytest

from resight.evaluation.statistics import scores


def test_a_diagram_by_hand():
    diagram = scores([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], n_bins=2)
    np.testing.assert_allclose(diagram["bins"]["stated"], [0.15, 0.9])
    np.testing.assert_allclose(diagram["bins"]["came_true"], [0.5, 1.0])
    assert diagram["bins"]["counts"] == [2, 2]
    assert diagram["ece"] == pytest.approx((0.35 + 0.1) / 2)


def test_scores_by_hand():
    found = scores([0.5, 0.25], [1, 0])
    assert found["log_loss"] == pytest.approx((np.log(2) - np.log(0.75)) / 2)
    assert found["brier"] == pytest.approx((0.25 + 0.0625) / 2)
    assert found["log_loss_constant"] == pytest.approx(np.log(2))
    assert np.isfinite(scores([0.0, 1.0], [1, 0])["log_loss"])


def test_true_probabilities_beat_the_constant_and_all_others():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20000)
    right = rng.uniform(size=20000) < p
    true, sharper = scores(p, right), scores(np.clip(1.5 * p - 0.25, 0.01, 0.99), right)
    assert true["ece"] < 0.015 < sharper["ece"]
    assert true["log_loss"] < min(true["log_loss_constant"], sharper["log_loss"])
    assert true["brier"] < min(true["brier_constant"], sharper["brier"])
    assert sum(true["bins"]["counts"]) == 20000
