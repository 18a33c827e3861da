"""Compute the poles and weights that GOG's matrix logarithm uses, and write them as JSON.

The logarithm is a Markov function, log x = integral over t > 0 of 1/(1 + t) - 1/(x + t), so the
rational function C - sum_k w_k / (x + t_k) that meets it in 2 n + 1 points of an interval has
n positive t_k and positive w_k. The points are the zeros of Zolotarev's function of the interval,
which makes the largest error close to the smallest possible one (N. Akhiezer, "Elements of the
theory of elliptic functions", 1990, chapter 9).

    python scripts/log_poles.py > src/resight/descriptors/gog_poles.json
"""

from __future__ import annotations

import json
from typing import Any

import mpmath

DIGITS = 150  # the linear system below is that ill-conditioned
TABLES = {"patch": (20, 10**7), "region": (24, 10**9)}


def poles_and_weights(n: int, condition: int) -> tuple[list[Any], list[Any], Any]:
    """Interpolate the logarithm on [1/sqrt(condition), sqrt(condition)].

    Returns
    -------
    poles, weights : lists of n mpmath numbers, poles ascending
    constant : mpmath number
    """
    with mpmath.workdps(DIGITS):
        numerator, denominator = _interpolant(n, _zolotarev_points(2 * n + 1, condition))
        poles = _negated_roots(denominator, condition)
        slope = [power * c for power, c in enumerate(denominator)][1:]
        weights = [-_value(numerator, -t) / _value(slope, -t) for t in poles]
        return poles, weights, numerator[-1]


def largest_error(poles: list[Any], weights: list[Any], constant: Any, condition: int) -> float:
    """Measure the largest error over a fine logarithmic grid of the interval."""
    worst = mpmath.mpf(0)
    for step in range(2001):
        x = mpmath.mpf(condition) ** (mpmath.mpf(step) / 2000 - mpmath.mpf(1) / 2)
        value = constant - mpmath.fsum(w / (x + t) for t, w in zip(poles, weights, strict=True))
        worst = max(worst, abs(value - mpmath.log(x)))
    return float(worst)


def _zolotarev_points(count: int, condition: int) -> list[Any]:
    upper = mpmath.sqrt(condition)
    parameter = 1 - mpmath.mpf(1) / condition  # k'^2
    period = mpmath.ellipk(parameter)
    arguments = [period * (2 * j + 1) / (2 * count) for j in range(count)]
    return [upper * mpmath.ellipfun("dn", u, m=parameter) ** 2 for u in arguments]


def _interpolant(n: int, points: list[Any]) -> tuple[list[Any], list[Any]]:
    # p(x) = q(x) log x at every point, q monic: 2 n + 1 linear equations in the coefficients.
    system = mpmath.matrix(2 * n + 1, 2 * n + 1)
    right = mpmath.matrix(2 * n + 1, 1)
    for row, x in enumerate(points):
        for power in range(n + 1):
            system[row, power] = x**power
        for power in range(n):
            system[row, n + 1 + power] = -mpmath.log(x) * x**power
        right[row] = mpmath.log(x) * x**n
    solution = list(mpmath.lu_solve(system, right))
    return solution[: n + 1], [*solution[n + 1 :], mpmath.mpf(1)]  # lowest power first


def _negated_roots(coefficients: list[Any], condition: int) -> list[Any]:
    # All roots are negative and simple, and far apart on a logarithmic scale.
    steps = 20 * len(coefficients)
    grid = [mpmath.mpf(condition) ** (mpmath.mpf(2 * i) / steps - 1) for i in range(steps + 1)]
    values = [_value(coefficients, -t) for t in grid]
    brackets = [grid[i : i + 2] for i in range(steps) if values[i] * values[i + 1] < 0]
    if len(brackets) != len(coefficients) - 1:
        raise ArithmeticError(f"found {len(brackets)} of {len(coefficients) - 1} roots; add DIGITS")
    return [
        mpmath.findroot(lambda t: _value(coefficients, -t), pair, solver="anderson", verify=False)
        for pair in brackets
    ]


def _value(coefficients: list[Any], x: Any) -> Any:
    total = mpmath.mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _table(n: int, condition: int) -> dict[str, Any]:
    poles, weights, constant = poles_and_weights(n, condition)
    return {
        "condition": float(condition),
        "largest_error": float(f"{largest_error(poles, weights, constant, condition):.1e}"),
        "poles": [float(pole) for pole in poles],
        "weights": [float(weight) for weight in weights],
    }


if __name__ == "__main__":
    print(json.dumps({name: _table(*table) for name, table in TABLES.items()}, indent=1))
