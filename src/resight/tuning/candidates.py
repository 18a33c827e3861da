"""What may be chosen by cross-validation, fixed before any measurement on real images.

A change of these lists after the first measurement must be listed in docs/tables.md with the
figures before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One setting of k-XQDA, from the simplest to the most specific in list order."""

    kernel: str
    width: float
    reg_form: str
    reg: float
    degree: int | None = None  # of a polynomial kernel, where it is not 2

    def params(self) -> dict[str, Any]:
        """Parameters for `resight.KXQDA`."""
        return {**self.kernel_params(), "reg_form": self.reg_form, "reg": self.reg}

    def kernel_params(self) -> dict[str, Any]:
        """Parameters for `resight.kernels.Kernel`."""
        own = {"kernel": self.kernel, "width": self.width}
        return own if self.degree is None else {**own, "degree": self.degree}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Candidate:
        """Undo `params`; other keys are not looked at."""
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})


# Strong to weak: equal scores go to the stronger regulariser and the simpler kernel.
_REGULARISERS = (
    ("kernel", 1e-2),
    ("kernel", 1e-3),
    ("kernel", 1e-4),
    ("relative", 1e-2),
    ("relative", 1e-3),
)
_PAPER = ("identity", 1e-7)
_KERNELS = (("linear", 1.0), ("poly", 1.0), ("rbf", 3.0), ("rbf", 1.0))

# Version `cv` of the paper's tables: 23 candidates, 3 folds over training people.
CV_FOLDS = 3
CV = tuple(
    Candidate(kernel, width, form, reg)
    for kernel, width in _KERNELS
    for form, reg in (*_REGULARISERS, *(() if kernel == "linear" else (_PAPER,)))
)

# Version `auto`: everything below was fixed on synthetic cameras before its first run on real
# images. See docs/auto.md for how these are combined.
AUTO_POOL = ("gog", "lomo", "lomo-dagger", "whos-dagger")
# Other normalisation and even light, for a second row of the paper's tables.
AUTO_VARIANTS = (
    "gog-norm",
    "gog-grey",
    "gog-retinex",
    "lomo-dagger-grey",
    "whos-dagger-grey",
    "whos-dagger-retinex",
)
AUTO_MIRROR = (False, True)

# XQDA is k-XQDA with a linear kernel and lambda K: the ridge of XQDA, told in training rows.
XQDA = Candidate("linear", 1.0, "kernel", 1e-3)
AUTO_LINEAR = (replace(XQDA, reg=1e-2), XQDA, replace(XQDA, reg=1e-4))
AUTO_CURVED = (
    Candidate("rbf", 3.0, "kernel", 1e-3),
    Candidate("rbf", 3.0, "relative", 1e-2),
    Candidate("poly", 1.0, "kernel", 1e-3),
)
KNFST_KERNEL = Candidate("rbf", 1.0, "identity", 0.0)  # of its authors; nothing is regularised
# Regularisers of k-XQDA on a sum of kernels, one for each descriptor.
AUTO_SUM_REGULARISERS = (("kernel", 1e-3), ("kernel", 1e-4), ("relative", 1e-2))
# Up to so many people: so many folds, drawn anew so many times.
AUTO_MANY = 250
AUTO_FOLDS = ((25, 5, 3), (75, 5, 2), (AUTO_MANY, 3, 2), (10**9, 3, 1))
# Penalty of leaving the default mixture and the natural weights of descriptors, over people.
AUTO_STRENGTH = 300.0
AUTO_PLAIN_STRENGTH = 800.0
# With so many people, what is learned and what is not have equal weights in the default mixture.
AUTO_HALF_LEARNED = 35
AUTO_TOGETHER = 0.7  # of what is learned, on all descriptors together; the rest on one each
AUTO_ROWS = 4000  # sightings that are chosen from and learned from, by whole people
