"""Declarations of parameters that several learners share, for scikit-learn's checks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from resight.kernels import KERNELS

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
COUNT = Interval(Integral, 1, None, closed="left")
SEED = Interval(Integral, 0, None, closed="left")

#: Of learners that see sightings through a kernel only.
KERNEL: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "gamma": [StrOptions({"mean"}), POSITIVE],
    "width": [POSITIVE],
    "degree": [COUNT],
    "coef0": [NOT_NEGATIVE],
}

#: Of learners that work after PCA.
PCA: dict[str, list[Any]] = {"pca": [StrOptions({"auto", "full"}), COUNT]}
