"""Statistics over trials against scipy.stats and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from resight.errors import InputError
from resight.evaluation.statistics import compare_paired, summarise


def test_summary_equals_scipy():
    x = np.random.default_rng(0).normal(60, 2, 10)
    summary = summarise(x)
    expected = stats.t.interval(0.95, 9, loc=x.mean(), scale=stats.sem(x))
    assert summary["mean"] == pytest.approx(x.mean())
    assert summary["sd"] == pytest.approx(np.std(x, ddof=1))
    assert summary["ci95"] == pytest.approx(list(expected))


def test_one_trial_has_no_spread():
    assert summarise([0.5]) == {"mean": 0.5, "sd": None, "ci95": None}


def test_correction_vanishes_with_the_test_part_and_becomes_the_paired_t_test():
    a, b = np.random.default_rng(1).normal(0.1, 1, (2, 10))
    corrected, plain = compare_paired(a, b, 1e-12), stats.ttest_rel(a, b)
    assert corrected.t == pytest.approx(plain.statistic)
    assert corrected.p_value == pytest.approx(plain.pvalue)
    assert corrected.ci95 == pytest.approx(tuple(plain.confidence_interval()))


def test_half_half_of_ten_splits_divides_t_by_the_root_of_eleven():
    a, b = np.random.default_rng(2).normal(0.1, 1, (2, 10))
    # (1/10 + 1) / (1/10) = 11
    assert compare_paired(a, b, 0.5).t == pytest.approx(
        stats.ttest_rel(a, b).statistic / np.sqrt(11)
    )


def test_swapping_the_learners_changes_the_sign_only():
    a, b = np.random.default_rng(3).normal(0, 1, (2, 6))
    forward, backward = compare_paired(a, b, 0.5), compare_paired(b, a, 0.5)
    assert forward.p_value == pytest.approx(backward.p_value)
    assert forward.mean_difference == pytest.approx(-backward.mean_difference)
    assert forward.ci95 == pytest.approx(tuple(-end for end in backward.ci95[::-1]))


def test_equal_differences_leave_no_doubt():
    same, better = (compare_paired([1.0, 2.0], b, 0.5) for b in ([1.0, 2.0], [0.0, 1.0]))
    assert (same.t, same.p_value) == (0.0, 1.0)
    assert (better.t, better.p_value) == (np.inf, 0.0)


def test_false_alarms_stay_near_the_level_on_overlapping_splits():
    """Two equally good learners on half/half splits of one small population."""
    rng = np.random.default_rng(4)
    alarms, plain_alarms, n_runs = 0, 0, 300
    for _ in range(n_runs):
        difference = rng.normal(size=60)  # per-person advantage of learner a; truly zero on average
        d = np.array([rng.permutation(difference)[:30].mean() for _ in range(10)])
        alarms += compare_paired(d, np.zeros(10), 0.5).p_value < 0.05
        plain_alarms += stats.ttest_1samp(d, 0).pvalue < 0.05
    assert alarms / n_runs < 0.08
    assert plain_alarms / n_runs > 0.25  # what the correction is for


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: summarise([]), "one finite number"),
        (lambda: summarise([np.nan]), "one finite number"),
        (lambda: compare_paired([1.0], [1.0], 0.5), "at least 2"),
        (lambda: compare_paired([1.0, 2.0], [1.0, 2.0, 3.0], 0.5), "2 and 3 trials"),
        (lambda: compare_paired([1.0, 2.0], [1.0, 2.0], 1.0), "between 0 and 1"),
    ],
)
def test_refusals_say_what_is_needed(call, message):
    with pytest.raises(InputError, match=message):
        call()
