"""Statistics over trials, and whether stated probabilities came true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtr, stdtrit

from resight.errors import InputError


@dataclass(frozen=True)
class Comparison:
    """Paired difference a - b over the same splits, with the corrected resampled t test."""

    mean_difference: float
    t: float
    p_value: float
    ci95: tuple[float, float]
    n: int


def summarise(values: ArrayLike) -> dict[str, Any]:
    """Mean, standard deviation (ddof=1) and 95 % t interval of the mean over trials.

    A single trial has no spread. The interval treats trials as independent. Splits of one dataset
    overlap, so it describes the spread over splits of this dataset, not the uncertainty about new
    people; to compare two learners use `compare_paired`.

    >>> summary = summarise([1.0, 2.0, 3.0])
    >>> summary["mean"], summary["sd"], [round(end, 3) for end in summary["ci95"]]
    (2.0, 1.0, [-0.484, 4.484])
    """
    x = _trials(values, "values")
    if len(x) == 1:
        return {"mean": float(x[0]), "sd": None, "ci95": None}
    mean, sd = float(x.mean()), float(x.std(ddof=1))
    half = float(stdtrit(len(x) - 1, 0.975) * sd / np.sqrt(len(x)))
    return {"mean": mean, "sd": sd, "ci95": [mean - half, mean + half]}


def compare_paired(a: ArrayLike, b: ArrayLike, test_fraction: float) -> Comparison:
    """Corrected resampled t test for two learners measured on the same random splits.

    Entry i of both comes from split i, of whose people `test_fraction` is tested (half/half: 0.5).
    Positive `mean_difference` means that `a` is larger; `p_value` is two-sided. Random splits share
    people, so trials are dependent and the plain paired t test finds differences that are not
    there. The variance of the mean difference is taken as (1/n + n_test/n_train) s^2 instead of
    s^2/n (Nadeau and Bengio, "Inference for the generalization error", Machine Learning 2003).
    """
    x, y = _trials(a, "a"), _trials(b, "b")
    if len(x) != len(y) or len(x) < 2:
        raise InputError(
            f"{len(x)} and {len(y)} trials; a paired comparison needs the same number, at least 2"
        )
    if not 0.0 < test_fraction < 1.0:
        raise InputError(
            f"test_fraction is {test_fraction}; it must be between 0 and 1, such as "
            "0.5 for a 50/50 split"
        )
    n, difference = len(x), x - y
    mean = float(difference.mean())
    ratio = test_fraction / (1.0 - test_fraction)
    error = float(np.sqrt((1.0 / n + ratio) * difference.var(ddof=1)))
    # All differences equal: there is no doubt at all, or no difference at all.
    certain = float(np.copysign(np.inf, mean)) if mean else 0.0
    t = mean / error if error > 0.0 else certain
    p_value = float(2.0 * stdtr(n - 1, -abs(t)))
    half = float(stdtrit(n - 1, 0.975)) * error
    return Comparison(mean, t, p_value, (mean - half, mean + half), n)


def sign_test(more: int, less: int) -> float:
    """Two-sided p-value that chance splits `more` + `less` differences at least so unevenly.

    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    return min(1.0, 2.0 * float(bdtr(min(more, less), more + less, 0.5)))


def scores(probabilities: ArrayLike, right: ArrayLike, n_bins: int = 10) -> dict[str, Any]:
    """Tell whether stated probabilities came true: reliability diagram and proper scores.

    ``bins`` hold equally many statements each, in the order of their probability; ``ece`` is the
    mean gap between what they state and what came true. The constant to compare with is the rate of
    success itself, the best that one number for all queries can do.
    """
    p, hit = np.asarray(probabilities, float), np.asarray(right, float)
    bins = np.array_split(np.argsort(p, kind="stable"), min(n_bins, len(p)))
    stated, came_true = (np.array([of[some].mean() for some in bins]) for of in (p, hit))
    counts = np.array([len(some) for some in bins])
    found: dict[str, Any] = {
        "queries": len(p),
        "right": float(hit.mean()),
        "ece": float(np.abs(stated - came_true) @ counts / counts.sum()),
        "bins": {
            "stated": stated.tolist(),
            "came_true": came_true.tolist(),
            "counts": counts.tolist(),
        },
    }
    for name, told in (("", p), ("_constant", np.full(len(p), hit.mean()))):
        sure = np.clip(told, 1e-12, 1 - 1e-12)
        found["log_loss" + name] = float(-np.mean(np.where(hit > 0, np.log(sure), np.log1p(-sure))))
        found["brier" + name] = float(np.mean((told - hit) ** 2))
    return found


def _trials(values: ArrayLike, what: str) -> NDArray[np.float64]:
    x = np.asarray(values, float)
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise InputError(
            f"{what} has shape {x.shape} or contains values that are not finite; give "
            "one finite number per trial"
        )
    return x
